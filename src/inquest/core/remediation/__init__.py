"""From a proposal to its effect: policy, approval, guards, the Job, whether it helped. Decides; a controller acts."""
