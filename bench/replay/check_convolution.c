// Checks convolutions and their gradients; see check.h. A convolution is linear in its input and in its
// filters: with signs s of the images and t of the output channels of a group, the sum of s * t * out is what
// the sum of s * input gives with the sum of t * filters, one image and one channel. The gradient of the
// input is such a convolution. That of the filters is linear in the input and in the gradient of the result:
// signs are of the channels of both, and one tap of the filters takes the place of a position. That of the
// bias is computed. If even that is too much work, only some positions or taps are checked.
#include "check_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double MOST_WORK = 1e8; // multiplications

enum { X = MOST_SPATIAL }; // extents are read as { outer, inner, ... }

// Steps of a tensor [outer][inner][space], in elements.
struct steps {
    size_t outer, inner, position; // position: from one spatial position to the next, in row-major order
};

static size_t product_of(const int64_t sizes[X]) {
    return (size_t)(sizes[0] * sizes[1] * sizes[2]);
}

static struct steps steps_of(size_t inner, size_t positions, bool channels_last) {
    if (channels_last) return (struct steps){inner * positions, 1, inner};
    return (struct steps){inner * positions, positions, 1};
}

// A convolution with derived numbers.
struct shape {
    const struct convolution *at;
    const struct operands *operands;
    size_t inputs, filters, outputs;  // spatial positions
    size_t in_of_group, out_of_group; // channels
    struct steps input_steps, filter_steps, output_steps;
    double error;
};

static struct shape shape_of(const struct convolution *at, const struct operands *operands) {
    struct shape of = {.at = at,
                       .operands = operands,
                       .inputs = product_of(at->input),
                       .filters = product_of(at->filter),
                       .outputs = product_of(at->output),
                       .in_of_group = (size_t)(at->in_channels / at->groups),
                       .out_of_group = (size_t)(at->out_channels / at->groups),
                       .error = data_type_error(operands->out.type)};
    of.input_steps = steps_of((size_t)at->in_channels, of.inputs, at->input_channels_last);
    of.output_steps = steps_of((size_t)at->out_channels, of.outputs, at->input_channels_last);
    of.filter_steps =
        steps_of(at->transposed ? of.out_of_group : of.in_of_group, of.filters, at->filter_channels_last);
    return of;
}

// Where the filter of a group's channels begins.
static size_t filter_at(const struct shape *of, size_t group, size_t in, size_t out) {
    if (of->at->transposed) {
        size_t outer = group * of->in_of_group + in;
        return outer * of->filter_steps.outer + out * of->filter_steps.inner;
    }
    size_t outer = group * of->out_of_group + out;
    return outer * of->filter_steps.outer + in * of->filter_steps.inner;
}

static void split(size_t position, const int64_t sizes[X], int64_t to[X]) {
    for (int i = X - 1; i >= 0; i--) {
        to[i] = (int64_t)(position % (size_t)sizes[i]);
        position /= (size_t)sizes[i];
    }
}

// The input position that an output position reads through a filter position; -1: none, or padding.
static int64_t meet(const struct convolution *at, const int64_t out[X], size_t filter_position) {
    int64_t tap[X], position = 0;
    split(filter_position, at->filter, tap);
    for (int i = 0; i < X; i++) {
        int64_t in = out[i] * at->stride[i] - at->padding[i] + tap[i] * at->dilation[i];
        if (at->transposed) {
            in = out[i] + at->padding[i] - tap[i] * at->dilation[i];
            if (in % at->stride[i] != 0) return -1;
            in /= at->stride[i];
        }
        if (in < 0 || in >= at->input[i]) return -1;
        position = position * at->input[i] + in;
    }
    return position;
}

// ---- the whole result -----------------------------------------------------------------------------------

struct sums {
    double *images, *channels; // signs
    double *input;             // [in_channels][inputs], summed over images
    double *filter;            // [groups][in_of_group][filters], summed over a group's output channels
    double *bias;              // [groups]
};

static void sum_inputs(const struct shape *of, struct sums *to, double line[]) {
    size_t channels = (size_t)of->at->in_channels;
    for (size_t image = 0; image < (size_t)of->at->batch; image++) {
        for (size_t channel = 0; channel < channels; channel++) {
            size_t from = image * of->input_steps.outer + channel * of->input_steps.inner;
            double *sum = to->input + channel * of->inputs;
            tensor_load(&of->operands->a, from, of->input_steps.position, of->inputs, line);
            for (size_t i = 0; i < of->inputs; i++) sum[i] += to->images[image] * line[i];
        }
    }
}

static void sum_filters(const struct shape *of, struct sums *to, double line[]) {
    double images = 0;
    for (int64_t i = 0; i < of->at->batch; i++) images += to->images[i];
    for (size_t group = 0; group < (size_t)of->at->groups; group++) {
        for (size_t out = 0; out < of->out_of_group; out++) {
            size_t channel = group * of->out_of_group + out;
            double sign = to->channels[channel];
            if (of->at->has_bias) to->bias[group] += images * sign * tensor_value(&of->operands->c, channel);
            for (size_t in = 0; in < of->in_of_group; in++) {
                double *sum = to->filter + (group * of->in_of_group + in) * of->filters;
                tensor_load(&of->operands->b, filter_at(of, group, in, out), of->filter_steps.position,
                            of->filters, line);
                for (size_t i = 0; i < of->filters; i++) sum[i] += sign * line[i];
            }
        }
    }
}

// The sum over channels at an output position.
static double wanted(const struct shape *of, const struct sums *sums, size_t group, size_t position) {
    int64_t out[X];
    double total = sums->bias[group];
    split(position, of->at->output, out);
    for (size_t tap = 0; tap < of->filters; tap++) {
        int64_t met = meet(of->at, out, tap);
        if (met < 0) continue;
        const double *input = sums->input + group * of->in_of_group * of->inputs + (size_t)met;
        const double *filter = sums->filter + group * of->in_of_group * of->filters + tap;
        for (size_t in = 0; in < of->in_of_group; in++) {
            total += input[in * of->inputs] * filter[in * of->filters];
        }
    }
    return total;
}

static int wrong_position(const struct shape *of, const struct sums *sums, size_t group, size_t position,
                          char reason[]) {
    double got = 0, squares = 0;
    for (size_t image = 0; image < (size_t)of->at->batch; image++) {
        for (size_t k = 0; k < of->out_of_group; k++) {
            size_t channel = group * of->out_of_group + k;
            double value = tensor_value(&of->operands->out, image * of->output_steps.outer +
                                                                channel * of->output_steps.inner +
                                                                position * of->output_steps.position);
            got += sums->images[image] * sums->channels[channel] * value;
            squares += value * value;
        }
    }
    double want = wanted(of, sums, group, position);
    double bound = SURE * of->error * sqrt(squares);
    return fabs(got - want) <= bound ? 0 : report_wrong("a sum over channels", got, want, reason);
}

static int wrong_sums(const struct shape *of, struct sums *sums, double line[], uint64_t *random,
                      char reason[]) {
    size_t groups = (size_t)of->at->groups, positions = of->outputs;
    double each =
        (double)of->filters * (double)of->in_of_group + (double)of->at->batch * (double)of->out_of_group;
    bool is_all = (double)groups * (double)positions * each <= MOST_WORK;
    size_t picks = is_all ? groups * positions : (size_t)(MOST_WORK / each) + 1;
    fill_signs(sums->images, (size_t)of->at->batch, random);
    fill_signs(sums->channels, (size_t)of->at->out_channels, random);
    sum_inputs(of, sums, line);
    sum_filters(of, sums, line);
    for (size_t i = 0; i < picks; i++) {
        size_t pick = is_all ? i : random_64(random) % (groups * positions);
        if (wrong_position(of, sums, pick / positions, pick % positions, reason) != 0) return -1;
    }
    return 0;
}

// ---- single elements ------------------------------------------------------------------------------------

static double element_wanted(const struct shape *of, size_t image, size_t group, size_t k, size_t position) {
    int64_t out[X];
    const struct operands *from = of->operands;
    double total = of->at->has_bias ? tensor_value(&from->c, group * of->out_of_group + k) : 0;
    split(position, of->at->output, out);
    for (size_t tap = 0; tap < of->filters; tap++) {
        int64_t met = meet(of->at, out, tap);
        if (met < 0) continue;
        for (size_t in = 0; in < of->in_of_group; in++) {
            size_t channel = group * of->in_of_group + in;
            size_t input = image * of->input_steps.outer + channel * of->input_steps.inner +
                           (size_t)met * of->input_steps.position;
            size_t filter = filter_at(of, group, in, k) + tap * of->filter_steps.position;
            total += tensor_value(&from->a, input) * tensor_value(&from->b, filter);
        }
    }
    return total;
}

static int wrong_elements(const struct shape *of, uint64_t *random, char reason[]) {
    for (int i = 0; i < SINGLE_ELEMENTS; i++) {
        size_t image = random_64(random) % (uint64_t)of->at->batch;
        size_t channel = random_64(random) % (uint64_t)of->at->out_channels;
        size_t position = random_64(random) % of->outputs;
        double got = tensor_value(&of->operands->out, image * of->output_steps.outer +
                                                          channel * of->output_steps.inner +
                                                          position * of->output_steps.position);
        double want =
            element_wanted(of, image, channel / of->out_of_group, channel % of->out_of_group, position);
        if (!(fabs(got - want) <= of->error * fabs(want)))
            return report_wrong("an element", got, want, reason);
    }
    return 0;
}

int check_convolution(const struct convolution *at, const struct operands *operands, char reason[]) {
    struct shape of = shape_of(at, operands);
    size_t images = (size_t)at->batch, channels = (size_t)at->out_channels, groups = (size_t)at->groups;
    size_t inputs = (size_t)at->in_channels * of.inputs, filters = (size_t)at->in_channels * of.filters;
    size_t longest = of.inputs > of.filters ? of.inputs : of.filters;
    double *room = calloc(images + channels + inputs + filters + groups + longest, sizeof *room);
    if (room == NULL) return report_no_memory(reason);
    struct sums sums = {.images = room, .channels = room + images};
    sums.input = sums.channels + channels;
    sums.filter = sums.input + inputs;
    sums.bias = sums.filter + filters;
    uint64_t random = 7;
    int status = wrong_sums(&of, &sums, sums.bias + groups, &random, reason);
    free(room);
    return status;
}

int check_convolution_elements(const struct convolution *at, const struct operands *operands, char reason[]) {
    struct shape of = shape_of(at, operands);
    uint64_t random = 9;
    return wrong_elements(&of, &random, reason);
}

// ---- gradients ------------------------------------------------------------------------------------------

// Here `operands.a` is the gradient of the result, with the layout of the output, and `c` the input.

// Sums over the channels of a group, with signs: [images][positions]; and room for the position of the input
// that a tap reads at each position of the result.
struct group_sums {
    double *input, *result;
    int64_t *met;
};

static void sum_channels(const struct tensor *from, const struct steps *steps, size_t images, size_t first,
                         size_t channels, size_t positions, const double signs[], double line[],
                         double to[]) {
    memset(to, 0, images * positions * sizeof *to);
    for (size_t image = 0; image < images; image++) {
        double *sum = to + image * positions;
        for (size_t k = 0; k < channels; k++) {
            tensor_load(from, image * steps->outer + (first + k) * steps->inner, steps->position, positions,
                        line);
            for (size_t i = 0; i < positions; i++) sum[i] += signs[k] * line[i];
        }
    }
}

// The sum over images and positions of the gradient of the result times the input that a tap reads there.
static double tap_wanted(const struct shape *of, const struct group_sums *sums, size_t tap) {
    int64_t out[X];
    double total = 0;
    for (size_t position = 0; position < of->outputs; position++) {
        split(position, of->at->output, out);
        sums->met[position] = meet(of->at, out, tap);
    }
    for (size_t image = 0; image < (size_t)of->at->batch; image++) {
        const double *result = sums->result + image * of->outputs, *input = sums->input + image * of->inputs;
        for (size_t position = 0; position < of->outputs; position++) {
            if (sums->met[position] >= 0) total += result[position] * input[sums->met[position]];
        }
    }
    return total;
}

static int wrong_tap(const struct shape *of, const struct tensor *gradient, const struct group_sums *sums,
                     const double in_signs[], const double out_signs[], size_t group, size_t tap,
                     char reason[]) {
    double got = 0, squares = 0;
    for (size_t out = 0; out < of->out_of_group; out++) {
        for (size_t in = 0; in < of->in_of_group; in++) {
            double value =
                tensor_value(gradient, filter_at(of, group, in, out) + tap * of->filter_steps.position);
            got += in_signs[in] * out_signs[out] * value;
            squares += value * value;
        }
    }
    double want = tap_wanted(of, sums, tap), bound = SURE * of->error * sqrt(squares);
    return fabs(got - want) <= bound ? 0 : report_wrong("a sum of the filters' gradient", got, want, reason);
}

// Checks the taps of a group; if there are more than `most`, random ones.
static int wrong_group(const struct shape *of, const struct tensor *gradient, size_t group, size_t most,
                       double *room, int64_t *met, uint64_t *random, char reason[]) {
    size_t images = (size_t)of->at->batch, longest = of->inputs > of->outputs ? of->inputs : of->outputs;
    double *in_signs = room, *out_signs = in_signs + of->in_of_group, *line = out_signs + of->out_of_group;
    struct group_sums sums = {.input = line + longest, .met = met};
    sums.result = sums.input + images * of->inputs;
    fill_signs(in_signs, of->in_of_group, random);
    fill_signs(out_signs, of->out_of_group, random);
    sum_channels(&of->operands->c, &of->input_steps, images, group * of->in_of_group, of->in_of_group,
                 of->inputs, in_signs, line, sums.input);
    sum_channels(&of->operands->a, &of->output_steps, images, group * of->out_of_group, of->out_of_group,
                 of->outputs, out_signs, line, sums.result);
    size_t picks = of->filters < most ? of->filters : most;
    for (size_t i = 0; i < picks; i++) {
        size_t tap = picks == of->filters ? i : random_64(random) % of->filters;
        if (wrong_tap(of, gradient, &sums, in_signs, out_signs, group, tap, reason) != 0) return -1;
    }
    return 0;
}

static int wrong_filters(const struct shape *of, const struct tensor *gradient, char reason[]) {
    size_t images = (size_t)of->at->batch, groups = (size_t)of->at->groups;
    size_t longest = of->inputs > of->outputs ? of->inputs : of->outputs;
    double each = (double)images * (double)of->outputs + (double)of->in_of_group * (double)of->out_of_group;
    size_t most = (size_t)(MOST_WORK / ((double)groups * each)) + 1;
    double *room = malloc(
        (of->in_of_group + of->out_of_group + longest + images * (of->inputs + of->outputs)) * sizeof *room);
    int64_t *met = malloc(of->outputs * sizeof *met);
    uint64_t random = 13;
    int status = room != NULL && met != NULL ? 0 : report_no_memory(reason);
    for (size_t group = 0; group < groups && status == 0; group++)
        status = wrong_group(of, gradient, group, most, room, met, &random, reason);
    free(met);
    free(room);
    return status;
}

static double filter_wanted(const struct shape *of, size_t in_channel, size_t out_channel, size_t tap) {
    int64_t out[X];
    double total = 0;
    for (size_t position = 0; position < of->outputs; position++) {
        split(position, of->at->output, out);
        int64_t met = meet(of->at, out, tap);
        for (size_t image = 0; image < (size_t)of->at->batch && met >= 0; image++) {
            size_t from = image * of->output_steps.outer + out_channel * of->output_steps.inner +
                          position * of->output_steps.position;
            size_t input = image * of->input_steps.outer + in_channel * of->input_steps.inner +
                           (size_t)met * of->input_steps.position;
            total += tensor_value(&of->operands->a, from) * tensor_value(&of->operands->c, input);
        }
    }
    return total;
}

static int wrong_filter_elements(const struct shape *of, const struct tensor *gradient, char reason[]) {
    enum { FEWEST = 4, TERMS = 1 << 22 };
    uint64_t random = 15, each = (uint64_t)of->at->batch * of->outputs;
    uint64_t affordable = TERMS / each < FEWEST ? FEWEST : TERMS / each;
    for (uint64_t i = 0; i < SINGLE_ELEMENTS && i < affordable; i++) {
        size_t group = random_64(&random) % (uint64_t)of->at->groups;
        size_t in = random_64(&random) % of->in_of_group, out = random_64(&random) % of->out_of_group;
        size_t tap = random_64(&random) % of->filters;
        double got = tensor_value(gradient, filter_at(of, group, in, out) + tap * of->filter_steps.position);
        double want = filter_wanted(of, group * of->in_of_group + in, group * of->out_of_group + out, tap);
        if (!(fabs(got - want) <= of->error * fabs(want)))
            return report_wrong("an element of the filters' gradient", got, want, reason);
    }
    return 0;
}

static int wrong_bias(const struct shape *of, const struct tensor *gradient, char reason[]) {
    double *line = malloc(of->outputs * sizeof *line);
    int status = line != NULL ? 0 : report_no_memory(reason);
    for (size_t channel = 0; channel < (size_t)of->at->out_channels && status == 0; channel++) {
        double got = tensor_value(gradient, channel), want = 0;
        for (size_t image = 0; image < (size_t)of->at->batch; image++) {
            tensor_load(&of->operands->a, image * of->output_steps.outer + channel * of->output_steps.inner,
                        of->output_steps.position, of->outputs, line);
            for (size_t i = 0; i < of->outputs; i++) want += line[i];
        }
        if (!(fabs(got - want) <= of->error * fabs(want)))
            status = report_wrong("an element of the bias' gradient", got, want, reason);
    }
    free(line);
    return status;
}

static struct operands operands_of_input(const struct operands *operands, const struct gradients *gradients) {
    return (struct operands){.a = operands->a, .b = operands->b, .out = gradients->of[OF_INPUT]};
}

int check_gradients(const struct convolution *at, const struct operands *operands, char reason[]) {
    const struct gradients gradients = gradients_in(&operands->out, at);
    const struct convolution other = convolution_of_gradient(at);
    const struct operands of_input = operands_of_input(operands, &gradients);
    const struct shape of = shape_of(at, operands);
    if (has_gradient(at, OF_INPUT) && check_convolution(&other, &of_input, reason) != 0) return -1;
    return has_gradient(at, OF_FILTER) ? wrong_filters(&of, &gradients.of[OF_FILTER], reason) : 0;
}

int check_gradients_elements(const struct convolution *at, const struct operands *operands, char reason[]) {
    const struct gradients gradients = gradients_in(&operands->out, at);
    const struct convolution other = convolution_of_gradient(at);
    const struct operands of_input = operands_of_input(operands, &gradients);
    const struct shape of = shape_of(at, operands);
    if (has_gradient(at, OF_INPUT) && check_convolution_elements(&other, &of_input, reason) != 0) return -1;
    if (has_gradient(at, OF_FILTER) && wrong_filter_elements(&of, &gradients.of[OF_FILTER], reason) != 0)
        return -1;
    return has_gradient(at, OF_BIAS) ? wrong_bias(&of, &gradients.of[OF_BIAS], reason) : 0;
}
