"""What `wayout doctor` looks at: one module for each kind of thing that can stand in the way."""
