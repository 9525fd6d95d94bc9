;; A schema that lies elsewhere. The port is what a test puts there; without one nobody listens.
(data (i32.const 4096) "{\"type\":\"object\",\"properties\":{\"n\":{\"$ref\":\"http://127.0.0.1:65535/schema.json\"}}}")
(func (export "list") (result i32)
  (i32.store (i32.const 1128) (i32.const 4096))
  (i32.store (i32.const 1132) (i32.const 82))
  (i32.const 1160))
