"""What Python source says: syntax trees, kernels, guards, emission sites, casts."""
