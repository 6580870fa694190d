"""Routing of tokens to experts."""

import torch

from tinyserve.ops.routing import pick_experts


class ExpertGate:
    """Scores every expert and keeps the best of each token."""

    def __init__(self, weight, top_k):
        self.weight = weight
        self.top_k = top_k

    def forward(self, hidden):
        scores = hidden @ self.weight
        weights = torch.empty(hidden.shape[0], self.top_k, dtype=torch.float32)
        experts = torch.empty(hidden.shape[0], self.top_k, dtype=torch.int32)
        pick_experts(scores, weights, experts, self.top_k)
        return weights, experts
