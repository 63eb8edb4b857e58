"""PyTorch: one fused kernel updates a weight and Adam's two means of it, which counts where all words of the embedding
move. The rest of a step is nn.GRU, in which nothing is known to be faster."""

# %% after optimizer
if torch.__version__ >= "2":
    optimizer = torch.optim.Adam(model.parameters(), lr=LR, betas=(BETA_1, BETA_2), eps=EPSILON, fused=True)
