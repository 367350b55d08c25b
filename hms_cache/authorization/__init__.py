"""Who may do what: principals, actions, objects, and the policy that decides. Knows nothing of the protocol."""
