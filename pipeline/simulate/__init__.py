"""A made-up fleet with the truth beside it, to try the pipeline on."""
