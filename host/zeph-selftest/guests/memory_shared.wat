;; Declares a memory that threads could share.
(memory $shared 1 1 shared)
