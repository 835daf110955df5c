/* leat.h -- all of Leat's public interface. */
#ifndef LEAT_LEAT_H
#define LEAT_LEAT_H

#include <leat/cluster.h>
#include <leat/control.h>
#include <leat/coordinator.h>
#include <leat/data.h>
#include <leat/embedding.h>
#include <leat/function.h>
#include <leat/graph.h>
#include <leat/image.h>
#include <leat/image_ops.h>
#include <leat/input.h>
#include <leat/io.h>
#include <leat/monitored.h>
#include <leat/nn.h>
#include <leat/ops.h>
#include <leat/parallel.h>
#include <leat/pipeline.h>
#include <leat/queue.h>
#include <leat/rnn.h>
#include <leat/saved_model.h>
#include <leat/saver.h>
#include <leat/sequence.h>
#include <leat/session.h>
#include <leat/status.h>
#include <leat/summary.h>
#include <leat/tensor.h>
#include <leat/train.h>
#include <leat/variable.h>

#endif
