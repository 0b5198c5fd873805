"""Generated graphs: Graph500's Kronecker graphs and the families of training and study."""
