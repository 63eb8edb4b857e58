"""Lightning, whose Fabric chooses the device as its Trainer does: one convolution."""

# %% after setup
fabric = L.Fabric(devices=1)
images, kernels = fabric.to_device((torch.from_numpy(x), torch.from_numpy(w)))
y = torch.nn.functional.conv2d(images, kernels, padding=1)
tell(y.cpu().numpy(), y.device)
