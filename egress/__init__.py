"""From who is alive to which addresses are here."""
