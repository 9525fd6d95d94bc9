  ;; A resource of the guest's own. Dropping one whose representation is not 0 runs for ever.
  (core module $dtor
    (func (export "drop") (param $rep i32)
      (if (local.get $rep) (then (loop $again (br $again))))))
  (core instance $dtor (instantiate $dtor))
  (type $own-resource (resource (rep i32) (dtor (func $dtor "drop"))))
  (core func $resource-new (canon resource.new $own-resource))
  (core func $resource-drop (canon resource.drop $own-resource))
  (core instance $core-resource
    (export "new" (func $resource-new))
    (export "drop" (func $resource-drop)))
