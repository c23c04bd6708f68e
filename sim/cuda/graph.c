// SPDX-License-Identifier: Apache-2.0
#include "sim/cuda/driver.h"

int capture_begin(struct call *call, struct cu_stream *handle, uint32_t mode)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	if (result != CU_SUCCESS)
		return result;
	if (mode > 2)
		return CU_INVALID_VALUE;
	if (stream->legacy)
		return CU_CAPTURE_UNSUPPORTED;
	driver_lock();
	if (stream->capture) {
		result = CU_INVALID_VALUE;
	} else {
		stream->capture = pool_new(&graphs);
		if (stream->capture) {
			stream->capture->context = stream->context;
			stream->capture_origin = true;
			stream->context->captures++;
		} else {
			result = CU_OUT_OF_MEMORY;
		}
	}
	driver_unlock();
	return result;
}

/* Streams that joined the capture leave it with the one where it began. */
int capture_end(struct call *call, struct cu_stream *handle, struct cu_graph **ret_graph)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);
	struct cu_graph *graph;

	if (result != CU_SUCCESS)
		return result;
	driver_lock();
	graph = stream->capture;
	if (!graph || !stream->capture_origin || !ret_graph) {
		driver_unlock();
		return !ret_graph || !graph ? CU_INVALID_VALUE : CU_CAPTURE_UNMATCHED;
	}
	for (struct cu_stream *other = NULL; (other = pool_next(&streams, other));) {
		if (other->capture == graph) {
			other->capture = NULL;
			other->capture_origin = false;
			other->context->captures--;
		}
	}
	driver_unlock();
	*ret_graph = graph;
	call->handle = (uintptr_t)graph;
	return CU_SUCCESS;
}

int capture_status(struct call *call, struct cu_stream *handle, uint32_t *ret_status)
{
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	if (result != CU_SUCCESS)
		return result;
	if (!ret_status)
		return CU_INVALID_VALUE;
	*ret_status = stream->capture ? 1 : 0;
	return CU_SUCCESS;
}

void graph_add(struct cu_graph *graph, int64_t ns, const struct cu_graph *what)
{
	graph->duration_ns += ns;
	graph->launches += what->launches;
	graph->copies += what->copies;
	graph->bytes += what->bytes;
}

int graph_create(struct call *call, struct cu_graph **ret_graph)
{
	if (!ret_graph)
		return CU_INVALID_VALUE;
	driver_lock();
	*ret_graph = pool_new(&graphs);
	driver_unlock();
	call->handle = (uintptr_t)*ret_graph;
	return *ret_graph ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

static int destroy(struct call *call, struct pool *pool, struct cu_graph *graph)
{
	int result = CU_SUCCESS;

	call->handle = (uintptr_t)graph;
	driver_lock();
	if (pool_has(pool, graph))
		pool_free(pool, graph);
	else
		result = CU_INVALID_VALUE;
	driver_unlock();
	return result;
}

int graph_destroy(struct call *call, struct cu_graph *graph)
{
	return destroy(call, &graphs, graph);
}

int graph_exec_destroy(struct call *call, struct cu_graph *exec)
{
	return destroy(call, &execs, exec);
}

/* Nodes have no attributes here: the handle only identifies them. */
int graph_add_kernel(struct call *call, struct cu_node **ret_node, struct cu_graph *graph,
		     const struct cu_kernel_node *node)
{
	const struct cu_function *function;

	call->handle = (uintptr_t)graph;
	if (!ret_node || !node)
		return CU_INVALID_VALUE;
	function = node->function ? node->function : node->kernel;
	if (!pool_has(&graphs, graph) || !pool_has(&functions, function))
		return CU_INVALID_VALUE;
	driver_lock();
	graph_add(graph, function->duration_ns, &(struct cu_graph){ .launches = 1 });
	*ret_node = (struct cu_node *)((char *)graph + graph->launches);
	driver_unlock();
	return CU_SUCCESS;
}

int graph_instantiate(struct call *call, struct cu_graph **ret_exec, struct cu_graph *graph)
{
	struct cu_graph *exec;
	struct slot slot;

	if (!ret_exec || !pool_has(&graphs, graph))
		return CU_INVALID_VALUE;
	driver_lock();
	exec = pool_new(&execs);
	if (exec) {
		slot = exec->slot;
		*exec = *graph;
		exec->slot = slot;
	}
	driver_unlock();
	*ret_exec = exec;
	call->handle = (uintptr_t)exec;
	return exec ? CU_SUCCESS : CU_OUT_OF_MEMORY;
}

int graph_instantiate_params(struct call *call, struct cu_graph **ret_exec, struct cu_graph *graph,
			     struct cu_instantiate_params *params)
{
	if (!params)
		return CU_INVALID_VALUE;
	params->result = 0;
	params->error_node = NULL;
	return graph_instantiate(call, ret_exec, graph);
}

int graph_launch(struct call *call, struct cu_graph *exec, struct cu_stream *handle)
{
	struct sim_work work = { .kind = SIM_GRAPH, .correlation = observe_call(SIM_CALL_GRAPH) };
	struct cu_stream *stream;
	int result = stream_resolve(call, handle, &stream);

	call->handle = (uintptr_t)exec;
	if (result != CU_SUCCESS)
		return result;
	if (!pool_has(&execs, exec))
		return CU_INVALID_VALUE;
	work.graph = (uintptr_t)exec;
	work.kernels = exec->launches;
	result = stream_work(stream, exec->duration_ns, exec, &work);
	observe_work(stream, &work);
	return result;
}

int graph_upload(struct call *call, struct cu_graph *exec, struct cu_stream *handle)
{
	struct cu_stream *stream;

	call->handle = (uintptr_t)exec;
	if (!pool_has(&execs, exec))
		return CU_INVALID_VALUE;
	return stream_resolve(call, handle, &stream);
}
