// SPDX-License-Identifier: Apache-2.0
#include "model/stacks.h"

#include <stdlib.h>
#include <string.h>

const struct stack_weight_info stack_weight_infos[STACK_WEIGHTS] = {
#define STACK_WEIGHT(id_, name_, unit_, title_) [STACK_##id_] = { name_, unit_, title_ },
#include "model/stack_weights.def"
};

bool stack_weight_parse(const char *text, enum stack_weight *ret_weight)
{
	for (unsigned i = 0; i < STACK_WEIGHTS; i++)
		if (strcmp(text, stack_weight_infos[i].name) == 0) {
			*ret_weight = (enum stack_weight)i;
			return true;
		}
	return false;
}

bool stack_weight_is_known(const struct stack_page *page, enum stack_weight weight)
{
	return weight != STACK_GPU_TIME || page->has_gpu_time;
}

void stack_view_free(struct stack_view *view)
{
	if (!view)
		return;
	free(view->places);
	free(view->rows);
	free(view->indexes);
	free(view->texts);
	free(view);
}
