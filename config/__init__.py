"""Settings: strict YAML, a schema with scope and modifiability, one transaction."""
