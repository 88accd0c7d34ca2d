-- Ends a Lua test that cannot run here. CTest reads the exit code.
--
--   if not found then require "skip" "no mpirun" end
return function(reason)
  print("skipped: " .. reason)
  os.exit(77, true)
end
