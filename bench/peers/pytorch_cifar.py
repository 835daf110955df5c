"""One tower of the CIFAR-10 net, trained as bench/cifar_bench.c trains it, by PyTorch.

    pytorch_cifar.py towers 1 SECONDS      BENCH_CHANNELS_LAST=1: images have their channels last
"""
import os
import resource
import sys
import time

import setting
import torch
from torch import nn

BATCH, SIDE = 128, 24
LAYOUT = torch.channels_last if os.environ.get("BENCH_CHANNELS_LAST") else torch.contiguous_format
if setting.THREADS:
    torch.set_num_threads(setting.THREADS)


def main(seconds):
    # PyTorch divides alpha by the size of the window.
    norm = lambda: nn.LocalResponseNorm(9, alpha=0.001, beta=0.75, k=1.0)
    pool = lambda: nn.MaxPool2d(3, 2, ceil_mode=True)
    net = nn.Sequential(nn.Conv2d(3, 64, 5, padding=2), nn.ReLU(), pool(), norm(),
                        nn.Conv2d(64, 64, 5, padding=2), nn.ReLU(), norm(), pool(), nn.Flatten(),
                        nn.Linear(2304, 384), nn.ReLU(), nn.Linear(384, 192), nn.ReLU(), nn.Linear(192, 10))
    net = net.to(memory_format=LAYOUT)
    decayed = [net[9].weight, net[11].weight]
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    parameters = list(net.parameters())
    averages = [p.detach().clone() for p in parameters]
    images = (torch.rand(BATCH, 3, SIDE, SIDE) * 2 - 1).to(memory_format=LAYOUT)
    labels = torch.randint(0, 10, (BATCH,))

    def step():
        opt.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels) + sum(0.002 * (w * w).sum() for w in decayed)
        loss.backward()
        opt.step()
        with torch.no_grad():
            torch._foreach_lerp_(averages, parameters, 0.0001)
        return loss.item()

    for _ in range(3):
        step()
    start, steps, took = time.perf_counter(), 0, 0.0
    while took < seconds:
        value = step()
        steps += 1
        took = time.perf_counter() - start
    print("examples_per_s %.1f\nloss %.4f" % (steps * BATCH / took, value))
    print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))


main(float(sys.argv[3]))
