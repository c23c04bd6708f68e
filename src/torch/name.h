// SPDX-License-Identifier: Apache-2.0
/*
 * src/torch knows PyTorch's names. An operator is named as torch.ops has it, without "aten::": add.Tensor.
 * The functions that its operators are probed by have names of C++ (trace/patterns.def), in which a name and
 * its overload are one word, add_Tensor: overloads.def says where it is divided.
 */
#pragma once

#include <stddef.h>

enum { TORCH_NAME_MAX = 96 }; /* bytes, with the NUL; longer ones are cut */

/*
 * The name of the operator that a probed function stands for:
 *
 *   at::_ops::add_Tensor::call                      add.Tensor
 *   torch::autograd::THPVariable_add                add
 *   THPEngine_run_backward                          backward
 *   torch::autograd::Engine::evaluate_function      backward.node
 *
 * Of any other symbol, the symbol.
 */
void torch_name(const char *symbol, char name[static TORCH_NAME_MAX]);
