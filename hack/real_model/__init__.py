"""A real engine with a real, very small model, to hold the protocol against something that was not written for it.

llama.cpp's own server with Gemma 3 270M, a base model: it follows no instruction, and that is what it is for. Nothing
here says anything about which models are good enough.

    make real-model

The engine and the weights (350 MB) go into an environment of their own, in the cache, locked by
`requirements/real-model.lock`; no part of the product needs them. The terms of Gemma hold for the weights.
"""
