"""The PTB tutorial's language model, trained as bench/ptb_bench.c trains it, by PyTorch.

    pytorch_ptb.py train MODEL CELL SECONDS    words/s; MODEL small, medium or large; CELL basic (nn.LSTM, all steps of a
                                               layer in one call) or cell (nn.LSTMCell, step by step)
"""
import resource
import sys
import time

import setting
import numpy as np
import torch
from torch import nn

VOCABULARY, BATCH, LAYERS = 10000, 20, 2
CONFIGS = {"small": (200, 20, 0.1, 5, 1.0), "medium": (650, 35, 0.05, 5, 0.5), "large": (1500, 35, 0.04, 10, 0.35)}
if setting.THREADS:
    torch.set_num_threads(setting.THREADS)


class Unrolled(nn.Module):
    """What nn.LSTM computes, by cells."""

    def __init__(self, units, drop):
        super().__init__()
        self.cells = nn.ModuleList(nn.LSTMCell(units, units) for _ in range(LAYERS))
        self.drop = nn.Dropout(drop)

    def forward(self, x, state):
        outputs, h, c = [], list(state[0]), list(state[1])
        for at in x:
            for i, cell in enumerate(self.cells):
                h[i], c[i] = cell(at, (h[i], c[i]))
                at = self.drop(h[i]) if i + 1 < LAYERS else h[i]
            outputs.append(at)
        return torch.stack(outputs), (torch.stack(h), torch.stack(c))


class Model(nn.Module):
    def __init__(self, kind, units, scale, keep):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, units, sparse=True)
        self.lstm = Unrolled(units, 1 - keep) if kind == "cell" else nn.LSTM(units, units, LAYERS, dropout=1 - keep)
        self.drop = nn.Dropout(1 - keep)
        self.softmax = nn.Linear(units, VOCABULARY)
        for p in self.parameters():
            nn.init.uniform_(p, -scale, scale)

    def forward(self, x, state):
        y, state = self.lstm(self.drop(self.embedding(x.t())), state)
        return self.softmax(self.drop(y)), state


def clip(parameters, limit):
    """Gradients clipped by their global norm; the embedding's are rows, as TensorFlow's IndexedSlices are."""
    parts = [p.grad._values() if p.grad.is_sparse else p.grad for p in parameters]
    norm = torch.sqrt(sum((g * g).sum() for g in parts))
    scale = limit / torch.clamp(norm, min=limit)
    for g in parts:
        g.mul_(scale)


def main(name, kind, seconds):
    units, steps, scale, norm, keep = CONFIGS[name]
    torch.manual_seed(1)
    model = Model(kind, units, scale, keep)
    parameters = list(model.parameters())
    opt = torch.optim.SGD(parameters, lr=1.0)
    r = np.random.RandomState(1)
    state = (torch.zeros(LAYERS, BATCH, units), torch.zeros(LAYERS, BATCH, units))

    def step(state):
        words = torch.from_numpy((VOCABULARY * r.rand(BATCH, steps + 1) ** 3).astype(np.int64))
        opt.zero_grad(set_to_none=True)
        logits, state = model(words[:, :-1], state)
        # The mean over the batch of the sums over the steps, as sequence_loss gives it.
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), words[:, 1:].t().flatten(), reduction="sum") / BATCH
        loss.backward()
        clip(parameters, norm)
        opt.step()
        return loss.item(), tuple(s.detach() for s in state)

    for _ in range(3):
        value, state = step(state)
    start, cpu, n, took = time.perf_counter(), time.process_time(), 0, 0.0
    while took < seconds:
        value, state = step(state)
        n += 1
        took = time.perf_counter() - start
    words, cpu = n * BATCH * steps, time.process_time() - cpu
    print("words_per_s %.1f\ncpu_us_per_word %.2f\nloss %.4f" % (words / took, 1e6 * cpu / words, value))
    print("peak_mb %.1f" % (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024.0))


main(sys.argv[2], sys.argv[3], float(sys.argv[4]))
