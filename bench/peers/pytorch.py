"""PyTorch's side of the benchmarks; the same figures as bench/leat_bench.c prints."""
import resource
import sys
import time

import setting
import torch

if setting.THREADS:
    torch.set_num_threads(setting.THREADS)

BATCH, BATCHES = 100, 100


def mnist(seconds):
    hid = torch.nn.Linear(784, 100)
    sm = torch.nn.Linear(100, 10)
    torch.nn.init.trunc_normal_(hid.weight, std=1.0 / 28)
    torch.nn.init.trunc_normal_(sm.weight, std=0.1)
    opt = torch.optim.Adam(list(hid.parameters()) + list(sm.parameters()), lr=0.01)
    n = BATCHES if seconds else 1
    images, labels = setting.batches(n, BATCH)
    warm, steps = (200 if seconds else 1), 0
    while True:
        if steps == warm:
            start = time.perf_counter()
        if steps >= warm and (steps - warm) % 20 == 0 and time.perf_counter() - start >= seconds:
            if seconds:
                print("steps_per_s %.1f" % ((steps - warm) / (time.perf_counter() - start)))
            return
        x, y_ = torch.from_numpy(images[steps % n]), torch.from_numpy(labels[steps % n])
        y = torch.softmax(sm(torch.relu(hid(x))), 1)
        loss = -(y_ * torch.log(torch.clamp(y, 1e-10, 1.0))).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss.item()
        steps += 1


what, seconds = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 2
mnist(seconds if what == "mnist" else 0)
print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))
