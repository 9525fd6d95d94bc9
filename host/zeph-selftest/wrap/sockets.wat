  (import "wasi:sockets/network@0.2.0" (instance $network
    (export "network" (type (sub resource)))
    (type $error-code' (enum "unknown" "access-denied" "not-supported" "invalid-argument" "out-of-memory" "timeout"
      "concurrency-conflict" "not-in-progress" "would-block" "invalid-state" "new-socket-limit" "address-not-bindable"
      "address-in-use" "remote-unreachable" "connection-refused" "connection-reset" "connection-aborted"
      "datagram-too-large" "name-unresolvable" "temporary-resolver-failure" "permanent-resolver-failure"))
    (export "error-code" (type (eq $error-code')))
    (type $ip-address-family' (enum "ipv4" "ipv6"))
    (export "ip-address-family" (type (eq $ip-address-family')))))
  (alias export $network "network" (type $network))
  (alias export $network "error-code" (type $network-error))
  (alias export $network "ip-address-family" (type $address-family))
  (import "wasi:sockets/instance-network@0.2.0" (instance $instance-network
    (alias outer 1 $network (type $network))
    (export "network" (type $network' (eq $network)))
    (export "instance-network" (func (result (own $network'))))))
  (import "wasi:sockets/tcp@0.2.0" (instance $tcp
    (export "tcp-socket" (type (sub resource)))))
  (alias export $tcp "tcp-socket" (type $tcp-socket))
  (import "wasi:sockets/tcp-create-socket@0.2.0" (instance $tcp-create
    (alias outer 1 $network-error (type $error-code))
    (export "error-code" (type $error-code' (eq $error-code)))
    (alias outer 1 $address-family (type $family))
    (export "ip-address-family" (type $family' (eq $family)))
    (alias outer 1 $tcp-socket (type $tcp-socket))
    (export "tcp-socket" (type $tcp-socket' (eq $tcp-socket)))
    (export "create-tcp-socket" (func (param "address-family" $family')
      (result (result (own $tcp-socket') (error $error-code')))))))
  (import "wasi:sockets/udp@0.2.0" (instance $udp
    (export "udp-socket" (type (sub resource)))))
  (alias export $udp "udp-socket" (type $udp-socket))
  (import "wasi:sockets/udp-create-socket@0.2.0" (instance $udp-create
    (alias outer 1 $network-error (type $error-code))
    (export "error-code" (type $error-code' (eq $error-code)))
    (alias outer 1 $address-family (type $family))
    (export "ip-address-family" (type $family' (eq $family)))
    (alias outer 1 $udp-socket (type $udp-socket))
    (export "udp-socket" (type $udp-socket' (eq $udp-socket)))
    (export "create-udp-socket" (func (param "address-family" $family')
      (result (result (own $udp-socket') (error $error-code')))))))
  (import "wasi:sockets/ip-name-lookup@0.2.0" (instance $lookup
    (alias outer 1 $network-error (type $error-code))
    (export "error-code" (type $error-code' (eq $error-code)))
    (alias outer 1 $network (type $network))
    (export "network" (type $network' (eq $network)))
    (export "resolve-address-stream" (type $resolve-address-stream (sub resource)))
    (export "resolve-addresses" (func (param "network" (borrow $network')) (param "name" string)
      (result (result (own $resolve-address-stream) (error $error-code')))))))
  (core func $sockets-network (canon lower (func $instance-network "instance-network")))
  (core func $sockets-tcp (canon lower (func $tcp-create "create-tcp-socket") (memory $memory)))
  (core func $sockets-udp (canon lower (func $udp-create "create-udp-socket") (memory $memory)))
  (core func $sockets-resolve (canon lower (func $lookup "resolve-addresses") (memory $memory)))
  (core instance $core-sockets
    (export "network" (func $sockets-network))
    (export "tcp" (func $sockets-tcp))
    (export "udp" (func $sockets-udp))
    (export "resolve" (func $sockets-resolve)))
