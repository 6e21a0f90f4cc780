"""Admission: the webhook that tells users at `kubectl apply` what the controllers would refuse, by the same rules."""
