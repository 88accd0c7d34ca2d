-- optional(name) -> the loadable module of this name, or nil if this gentables was built without it. Raises
-- an error if the module exists and cannot be loaded.
return function(name)
  local found, module = pcall(require, name)
  if found then return module end
  if not tostring(module):find(("module '%s' not found"):format(name), 1, true) then error(module, 0) end
end
