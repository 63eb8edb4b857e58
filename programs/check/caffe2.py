"""Caffe2: one convolution."""

# %% after setup
workspace.FeedBlob("x", x, device_option=device)
workspace.FeedBlob("w", w, device_option=device)
net = core.Net("check")
with core.DeviceScope(device):
    net.Conv(["x", "w"], "y", kernel=3, pad=1)
workspace.RunNetOnce(net)
tell(workspace.FetchBlob("y"), device_name)
