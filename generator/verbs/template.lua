-- gentables template: renders one template by hand, as the build of the bench does; see codec/template.lua.
return require "codec.template"
