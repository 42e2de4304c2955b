"""What a model is told. Text of the cluster goes in filtered and framed only."""
