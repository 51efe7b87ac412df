"""The settings: one module per section, each field with its scope and modifiability."""
