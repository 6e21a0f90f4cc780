"""What users write and read: the custom resources as pydantic models, and the CRD generator."""
