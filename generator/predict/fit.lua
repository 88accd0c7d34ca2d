-- The time of one strategy at one shape as a function of the number of nodes: Hockney's model, fitted to the
-- times at the measured numbers of nodes, and its value at a larger number.
--
--   T(nodes) = c + a * steps(nodes) + b * volume(nodes)      with a law of growth.lua
--
-- Few numbers of nodes are measured, and a strategy may follow several laws, so no single fit is used. All
-- models with these laws and with some of the three terms, as far as the points determine them and all
-- coefficients are positive, are averaged, each with the weight exp(-chi^2 / 2 - terms) (Akaike's). The
-- interval includes the noise of the points, the error of each fit, and the differences between the models.
--
-- Sizes have coefficients of their own, because libraries change their protocols with the size. One limit
-- comes from other sizes: the time of a step has little to do with the size, so all steps together take at
-- most STEPS_AT_MOST times as long as the whole of a small message. Most time of a large message is in its
-- bytes.
local fit = {}

-- The least relative error of a time, beside its own interval: machines vary between launches on different
-- nodes.
fit.LEAST_ERROR = 0.03

-- A point that lies farther than this from every model, as a share, and than 3 standard errors of the point,
-- shows a change of regime.
fit.KINK = 0.15

-- A message of a rendezvous takes three, against one of a small message.
fit.STEPS_AT_MOST = 3

local NORMAL_95 = 1.96
local MOST_TERMS = 3

-- ---- least squares ----------------------------------------------------------------------------

-- The inverse of a small symmetric matrix by Gauss-Jordan elimination; nil if it is nearly singular.
local function inverse(matrix)
  local n, work = #matrix, {}
  for i = 1, n do
    work[i] = table.move(matrix[i], 1, n, 1, {})
    for j = 1, n do work[i][n + j] = i == j and 1 or 0 end
  end
  for i = 1, n do
    local pivot = work[i][i]
    if math.abs(pivot) < 1e-9 * matrix[i][i] then return nil end
    for j = i, 2 * n do work[i][j] = work[i][j] / pivot end
    for k = 1, n do
      local factor = k ~= i and work[k][i] or 0
      for j = i, 2 * n do work[k][j] = work[k][j] - factor * work[i][j] end
    end
  end
  local out = {}
  for i = 1, n do out[i] = table.move(work[i], n + 1, 2 * n, 1, {}) end
  return out
end

local function dot(a, b)
  local sum = 0
  for i = 1, #a do sum = sum + a[i] * b[i] end
  return sum
end

-- The normal equations of rows of terms and times, with weights 1 / (error * time)^2.
local function normal_equations(points, terms)
  local matrix, right = {}, {}
  for i = 1, #terms[1] do
    matrix[i], right[i] = {}, 0
    for j = 1, #terms[1] do matrix[i][j] = 0 end
  end
  for p, point in ipairs(points) do
    local weight = 1 / (point.error * point.time_us) ^ 2
    for i, x in ipairs(terms[p]) do
      right[i] = right[i] + weight * x * point.time_us
      for j, y in ipairs(terms[p]) do matrix[i][j] = matrix[i][j] + weight * x * y end
    end
  end
  return matrix, right
end

-- Fits time = terms * coefficients. Returns { coefficients, covariance, chi_squared, largest = the largest
-- residual, in the larger one of KINK and 3 errors of its point }; nil if the points do not determine them,
-- or if one is not positive.
local function least_squares(points, terms)
  local matrix, right = normal_equations(points, terms)
  local covariance = inverse(matrix)
  if not covariance then return nil end
  local model = { coefficients = {}, covariance = covariance, chi_squared = 0, largest = 0 }
  for i = 1, #right do
    model.coefficients[i] = dot(covariance[i], right)
    if model.coefficients[i] <= 0 then return nil end
  end
  for p, point in ipairs(points) do
    local residual = math.abs(dot(terms[p], model.coefficients) / point.time_us - 1)
    model.chi_squared = model.chi_squared + (residual / point.error) ^ 2
    model.largest = math.max(model.largest, residual / math.max(fit.KINK, 3 * point.error))
  end
  return model
end

-- ---- models -----------------------------------------------------------------------------------

-- Calls use(choice) for each choice of 1 to `most` of the three terms, as { is_constant, has_steps,
-- has_volume }.
local function each_choice(most, use)
  for number = 1, (1 << MOST_TERMS) - 1 do
    local choice, count = {}, 0
    for i = 1, MOST_TERMS do
      choice[i] = number >> (i - 1) & 1 == 1
      count = count + (choice[i] and 1 or 0)
    end
    if count <= most then use(choice, count) end
  end
end

-- The chosen ones of the terms 1, steps and volume.
local function terms_at(law, choice, nodes, ranks_per_node)
  local all, out = { 1, law.steps(nodes, ranks_per_node), law.volume(nodes, ranks_per_node) }, {}
  for i = 1, MOST_TERMS do
    if choice[i] then out[#out + 1] = all[i] end
  end
  return out
end

-- Whether the steps of a model take longer than those of a small message can; `small`: its times.
local function has_slow_steps(model, law, choice, where)
  local a = choice[2] and model.coefficients[choice[1] and 2 or 1] or 0
  for _, point in ipairs(where.small) do
    local steps = law.steps(point.nodes, where.ranks_per_node)
    if a * steps > fit.STEPS_AT_MOST * point.time_us then return true end
  end
  return false
end

-- All models of these laws: { law, choice, count, ... of least_squares }. With two points a model may have
-- two terms, with more of them one term less than points.
local function models_of(points, laws, where)
  local models = {}
  local most = math.min(MOST_TERMS, math.max(2, #points - 1))
  for _, law in ipairs(laws) do
    each_choice(most, function(choice, count)
      local terms = {}
      for p, point in ipairs(points) do
        terms[p] = terms_at(law, choice, point.nodes, where.ranks_per_node)
      end
      local model = least_squares(points, terms)
      if model and not has_slow_steps(model, law, choice, where) then
        model.law, model.choice, model.count = law, choice, count
        models[#models + 1] = model
      end
    end)
  end
  return models
end

-- The factor by which errors are larger than those of the points: at least 1, the least chi^2 for each degree
-- of freedom.
local function excess_of(models, point_count)
  local least = math.huge
  for _, model in ipairs(models) do
    least = math.min(least, model.chi_squared / math.max(1, point_count - model.count))
  end
  return math.max(1, least)
end

-- ---- predictions ------------------------------------------------------------------------------

-- The relative error of a row's time: from its interval, if it has one, and at least LEAST_ERROR.
function fit.error_of(row)
  local own = 0
  if row.low_us and row.high_us and row.low_us > 0 then
    own = math.log(row.high_us / row.low_us) / (2 * NORMAL_95)
  end
  return math.sqrt(own * own + fit.LEAST_ERROR * fit.LEAST_ERROR)
end

-- The prediction at `where`, { nodes, ranks_per_node, small = the points of the fastest shape }, from points
-- { nodes, time_us, error }, by laws: { log_time = the natural logarithm of microseconds, error = its
-- standard error }; nil if the points follow no law.
function fit.predict(points, laws, where)
  local models = models_of(points, laws, where)
  local excess, weights, sum, square, closest = excess_of(models, #points), 0, 0, 0, math.huge
  for _, model in ipairs(models) do
    closest = math.min(closest, model.largest)
    local terms, variance = terms_at(model.law, model.choice, where.nodes, where.ranks_per_node), 0
    local time_us = dot(terms, model.coefficients)
    for i, x in ipairs(terms) do variance = variance + x * dot(model.covariance[i], terms) end
    local log_time = math.log(time_us)
    local weight = math.exp(-model.chi_squared / excess / 2 - model.count)
    weights, sum = weights + weight, sum + weight * log_time
    square = square + weight * (log_time * log_time + excess * variance / (time_us * time_us))
  end
  if closest > 1 then return nil end
  local mean = sum / weights
  local error_squared = math.max(0, square / weights - mean * mean) + excess * fit.LEAST_ERROR ^ 2
  return { log_time = mean, error = math.sqrt(error_squared) }
end

-- The ends of the 95 % interval of a prediction, in microseconds.
function fit.interval(prediction)
  local half = NORMAL_95 * prediction.error
  return math.exp(prediction.log_time - half), math.exp(prediction.log_time + half)
end

-- Whether the lower bound (95 %, one end of the interval) of the gain of one prediction over another is above
-- 0.
function fit.is_surely_faster(prediction, than)
  local error = math.sqrt(prediction.error ^ 2 + than.error ^ 2)
  return than.log_time - prediction.log_time > NORMAL_95 * error
end

return fit
