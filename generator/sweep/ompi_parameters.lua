-- The parameters of Open MPI that `sweep --transport` searches, by major version: families of settings {
-- base, axes }. A setting is the family's base and one text of each axis: parameters joined by ";", or "" for
-- the defaults. `component`: this coll component does all calls, and has no algorithms to choose from. Up to
-- Open MPI 4 the shared-memory transport is called vader, and a parameter names the mechanism of its single
-- copies.
--
-- Without single copies a message is sent in pieces, and more of them may be in flight than the default of
-- three. coll/sm passes a message through segments with a fragment for each rank; the sets of segments have a
-- flag each, and with more sets ranks wait less for each other. By default its control blocks are a page
-- apart, and its fragments a power of two, so that they compete for few sets of a cache.
--
-- UCX, if Open MPI was built with it, uses only devices of a network by default. Names in capitals are
-- variables of the environment that configure it: shared memory only; pieces in place of single copies, above
-- a limit with a rendezvous; and queue elements that fit small messages, because the first calls that need a
-- piece seem to be slow (its pages are new), which matters less for longer calls.
return function(major)
  local btl = major >= 5 and "btl_sm" or "btl_vader"
  local one_copy = major < 5 and "btl_vader_single_copy_mechanism=none;" or ""
  local copies = { "", ("%s%s_max_send_size=65536;pml_ob1_send_pipeline_depth=16"):format(one_copy, btl),
    ("%s%s_max_send_size=262144"):format(one_copy, btl) }
  local eager, fragments, segments = {}, {}, {}
  for i, limit in ipairs { 32768, 65536 } do eager[i] = ("%s_eager_limit=%d"):format(btl, limit) end
  for i, size in ipairs { 8256, 16448, 32832 } do fragments[i] = ("coll_sm_fragment_size=%d"):format(size) end
  for i, sets in ipairs { { 32, 8 }, { 64, 8 }, { 128, 8 } } do
    segments[i] = ("coll_sm_comm_num_segments=%d;coll_sm_comm_in_use_flags=%d"):format(sets[1], sets[2])
  end
  local pieces, elements = {}, {}
  for i, sizes in ipairs { { 32768, 65536 }, { 49152, 65536 }, { 61440, 131072 } } do
    pieces[i] = ("UCX_POSIX_SEG_SIZE=%d;UCX_RNDV_THRESH=%d"):format(sizes[1], sizes[2])
  end
  for i, size in ipairs { 4224, 8448 } do elements[i] = ("UCX_POSIX_FIFO_ELEM_SIZE=%d"):format(size) end
  return { { axes = { copies, eager } },
    { component = "sm", base = "coll_sm_priority=90;coll_sm_control_size=64",
      axes = { fragments, segments } },
    { base = "pml=ucx;pml_ucx_tls=any;pml_ucx_devices=any;UCX_TLS=posix;UCX_RNDV_SCHEME=am",
      axes = { pieces, elements } } }
end
