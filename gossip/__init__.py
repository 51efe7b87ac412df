"""SWIM membership on hashicorp/memberlist's wire."""
