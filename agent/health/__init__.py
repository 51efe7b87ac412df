"""Whether this node is fit to carry anything: checks, what they mean, and who runs them."""
