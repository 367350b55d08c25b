"""Authorization: principals, actions, objects, and the policy that decides. Independent of the protocol."""
