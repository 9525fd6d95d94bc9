;; One file operation on the first granted directory, as told: `{"n":"rPATH|PATH"}`. Says what it read, `ok`, or `E` and the number
;; of the error. r: reads. w: makes or overwrites. a: changes without making. l: reads a symbolic link. u: removes. s: makes a
;; symbolic link. m: renames. h: makes a hard link. n: does nothing. o: opens without end, and never closes.
;; with: streams files
(import "files" "preopens" (func $preopens (param i32)))
(import "files" "open" (func $open (param i32 i32 i32 i32 i32 i32 i32)))
(import "files" "read" (func $read (param i32 i64 i64 i32)))
(import "files" "write" (func $write (param i32 i32 i32 i64 i32)))
(import "files" "readlink" (func $readlink (param i32 i32 i32 i32)))
(import "files" "unlink" (func $unlink (param i32 i32 i32 i32)))
(import "files" "symlink" (func $symlink (param i32 i32 i32 i32 i32 i32)))
(import "files" "rename" (func $rename (param i32 i32 i32 i32 i32 i32 i32)))
(import "files" "link" (func $link (param i32 i32 i32 i32 i32 i32 i32 i32)))
(data (i32.const 4096) "written by the guest")
(data (i32.const 4128) "ok")
(data (i32.const 4132) "no directory")
(global $dir (mut i32) (i32.const 0))
(global $from (mut i32) (i32.const 0))
(global $from-len (mut i32) (i32.const 0))
(global $to (mut i32) (i32.const 0))
(global $to-len (mut i32) (i32.const 0))
(func $call (param $arguments i32) (result i32)
  (local $op i32) (local $file i32)
  (call $preopens (i32.const 4200))
  (if (i32.eqz (i32.load (i32.const 4204))) (then (return (call $text (i32.const 4132) (i32.const 12)))))
  (global.set $dir (i32.load (i32.load (i32.const 4200))))
  (call $paths (i32.add (i32.load offset=8 (local.get $arguments)) (i32.const 7)))
  (local.set $op (i32.add (call $variant (local.get $arguments)) (i32.const 97)))
  (if (i32.eq (local.get $op) (i32.const 0x72)) ;; r
    (then
      (if (call $opens (i32.const 0) (i32.const 1)) (then (return (call $failed (i32.const 4204)))))
      (call $read (i32.load (i32.const 4204)) (i64.const 1000) (i64.const 0) (i32.const 4200))
      (if (i32.load8_u (i32.const 4200)) (then (return (call $failed (i32.const 4204)))))
      (return (call $text (i32.load (i32.const 4204)) (i32.load (i32.const 4208))))))
  (if (i32.eq (local.get $op) (i32.const 0x77)) (then (return (call $writes (i32.const 1))))) ;; w
  (if (i32.eq (local.get $op) (i32.const 0x61)) (then (return (call $writes (i32.const 0))))) ;; a
  (if (i32.eq (local.get $op) (i32.const 0x6c)) ;; l
    (then
      (call $readlink (global.get $dir) (global.get $from) (global.get $from-len) (i32.const 4200))
      (if (i32.load8_u (i32.const 4200)) (then (return (call $failed (i32.const 4204)))))
      (return (call $text (i32.load (i32.const 4204)) (i32.load (i32.const 4208))))))
  (if (i32.eq (local.get $op) (i32.const 0x75)) ;; u
    (then (call $unlink (global.get $dir) (global.get $from) (global.get $from-len) (i32.const 4200))))
  (if (i32.eq (local.get $op) (i32.const 0x73)) ;; s
    (then
      (call $symlink (global.get $dir) (global.get $from) (global.get $from-len) (global.get $to) (global.get $to-len)
        (i32.const 4200))))
  (if (i32.eq (local.get $op) (i32.const 0x6d)) ;; m
    (then
      (call $rename (global.get $dir) (global.get $from) (global.get $from-len) (global.get $dir) (global.get $to)
        (global.get $to-len) (i32.const 4200))))
  (if (i32.eq (local.get $op) (i32.const 0x68)) ;; h
    (then
      (call $link (global.get $dir) (i32.const 0) (global.get $from) (global.get $from-len) (global.get $dir)
        (global.get $to) (global.get $to-len) (i32.const 4200))))
  (if (i32.eq (local.get $op) (i32.const 0x6f)) ;; o
    (then (loop $again (br_if $again (i32.eqz (call $opens (i32.const 0) (i32.const 1)))))
      (return (call $failed (i32.const 4204)))))
  (if (i32.load8_u (i32.const 4200)) (then (return (call $failed (i32.const 4201)))))
  (call $text (i32.const 4128) (i32.const 2)))
;; Finds the two paths: the first ends at a bar, the second at a quotation mark.
(func $paths (param $at i32)
  (i32.store (i32.const 4200) (i32.const 0))
  (global.set $from (local.get $at))
  (loop $again
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x7c))
      (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $again))))
  (global.set $from-len (i32.sub (local.get $at) (global.get $from)))
  (local.set $at (i32.add (local.get $at) (i32.const 1)))
  (global.set $to (local.get $at))
  (loop $again
    (if (i32.ne (i32.load8_u (local.get $at)) (i32.const 0x22))
      (then (local.set $at (i32.add (local.get $at) (i32.const 1))) (br $again))))
  (global.set $to-len (i32.sub (local.get $at) (global.get $to))))
;; Follows symbolic links; not 0 when it failed.
(func $opens (param $how i32) (param $flags i32) (result i32)
  (call $open (global.get $dir) (i32.const 1) (global.get $from) (global.get $from-len) (local.get $how)
    (local.get $flags) (i32.const 4200))
  (i32.load8_u (i32.const 4200)))
(func $writes (param $how i32) (result i32)
  (if (call $opens (local.get $how) (i32.const 2)) (then (return (call $failed (i32.const 4204)))))
  (call $write (i32.load (i32.const 4204)) (i32.const 4096) (i32.const 20) (i64.const 0) (i32.const 4200))
  (if (i32.load8_u (i32.const 4200)) (then (return (call $failed (i32.const 4208)))))
  (call $text (i32.const 4128) (i32.const 2)))
(func $failed (param $where i32) (result i32)
  (local $code i32)
  (local.set $code (i32.load8_u (local.get $where)))
  (i32.store8 (i32.const 4300) (i32.const 0x45))
  (i32.store8 (i32.const 4301) (i32.add (i32.const 48) (i32.div_u (local.get $code) (i32.const 10))))
  (i32.store8 (i32.const 4302) (i32.add (i32.const 48) (i32.rem_u (local.get $code) (i32.const 10))))
  (call $text (i32.const 4300) (i32.const 3)))
