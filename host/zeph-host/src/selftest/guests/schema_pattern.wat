;; A schema with a pattern that takes for ever on the text `aaaa…!`.
(data (i32.const 4096) "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"string\",\"pattern\":\"^(?=a)(a|a|aa)+$\"}}}")
(func (export "list") (result i32)
  (i32.store (i32.const 1128) (i32.const 4096))
  (i32.store (i32.const 1132) (i32.const 83))
  (i32.const 1160))
