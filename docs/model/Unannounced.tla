---------------------------- MODULE Unannounced ----------------------------
(***************************************************************************)
(* A writer that takes no part in leases beside the first member of a set. *)
(*                                                                         *)
(* The writer looks at the table of members now and then. A look that      *)
(* found none lets it commit for LookUnits of its clock; a write that      *)
(* takes longer looks again, under the lock. If there is a lease it is     *)
(* ended first, which Lease.tla is about. A look that a replica answered   *)
(* counts for nothing. The member holds no lease before its row was there  *)
(* for WaitUnits of its own clock, and takes the lock once more for it.    *)
(* Time passes as in Lease.tla; a process may stop anywhere.               *)
(***************************************************************************)
EXTENDS Integers

CONSTANTS
    MaxWrites,      \* writes in one behavior
    Broken          \* the guard that is left out; "none" for the rule itself

Slow == 2
Fast == 3
LookUnits == 2      \* the writer trusts a look until it has counted so many
WaitUnits == 3      \* the member waits until it has counted so many

VARIABLES
    position,   \* committed events
    lock,       \* who holds the lock of NOTIFICATION_SEQUENCE
    there,      \* whether the member's row is there
    replica,    \* whether a replica has it
    waited,     \* units since then, by the member's clock
    lease,      \* whether it answers reads by lease
    applied,    \* the position of its memory
    age,        \* units since the writer's last look was sent
    look,       \* how far a look is: "none", "sent", "read"
    found,      \* whether the look on its way found a member
    known,      \* whether the last one that was answered did
    phase       \* of the write: "idle", "locked", "allowed"

vars == <<position, lock, there, replica, waited, lease, applied, age, look, found, known, phase>>

Init ==
    /\ position = 0 /\ lock = "nobody"
    /\ there = FALSE /\ replica = FALSE /\ waited = 0 /\ lease = FALSE /\ applied = 0
    /\ age = [last |-> LookUnits, sent |-> 0] /\ look = "none" /\ found = FALSE /\ known = FALSE
    /\ phase = "idle"

(* The member. Both steps are transactions under the lock, and tell where the log stands. *)
Join ==
    /\ ~there /\ lock = "nobody"
    /\ there' = TRUE /\ waited' = 0
    /\ UNCHANGED <<replica, position, lock, lease, applied, age, look, found, known, phase>>

TakeLease ==
    /\ there /\ ~lease
    /\ lock = "nobody" \/ Broken = "a lease without the lock"
    /\ waited >= WaitUnits \/ Broken = "no wait"
    /\ lease' = TRUE /\ applied' = position
    /\ UNCHANGED <<replica, position, lock, there, waited, age, look, found, known, phase>>

Leave ==
    /\ there /\ lock = "nobody"
    /\ there' = FALSE /\ lease' = FALSE /\ waited' = 0
    /\ UNCHANGED <<replica, position, lock, applied, age, look, found, known, phase>>

(* The writer looks: sent, read by the database, answered. *)
Send == /\ look = "none" /\ look' = "sent" /\ age' = [age EXCEPT !.sent = 0]
        /\ UNCHANGED <<replica, position, lock, there, waited, lease, applied, found, known, phase>>

Read == /\ look = "sent" /\ look' = "read" /\ found' = there
        /\ UNCHANGED <<replica, position, lock, there, waited, lease, applied, age, known, phase>>

ReadReplica ==
    /\ look = "sent"
    /\ IF Broken = "a look at a replica" THEN look' = "read" /\ found' = replica ELSE look' = "none" /\ UNCHANGED found
    /\ UNCHANGED <<replica, position, lock, there, waited, lease, applied, age, known, phase>>

Replicate == /\ replica' = there
             /\ UNCHANGED <<position, lock, there, waited, lease, applied, age, look, found, known, phase>>

Answered ==
    /\ look = "read" /\ look' = "none" /\ known' = found
    /\ age' = [age EXCEPT !.last = IF Broken = "counted from the answer" THEN 0 ELSE age.sent]
    /\ UNCHANGED <<replica, position, lock, there, waited, lease, applied, found, phase>>

(* The writer writes. *)
Lock == /\ phase = "idle" /\ lock = "nobody" /\ position < MaxWrites
        /\ lock' = "writer" /\ phase' = "locked"
        /\ UNCHANGED <<replica, position, there, waited, lease, applied, age, look, found, known>>

Allow ==
    /\ phase = "locked"
    /\ \/ ~known /\ (age.last < LookUnits \/ Broken = "a look for good")
       \/ ~lease               \* it looked under the lock, or ended it, by Lease.tla
    /\ phase' = "allowed"
    /\ UNCHANGED <<replica, position, lock, there, waited, lease, applied, age, look, found, known>>

End == /\ phase = "locked" /\ (known \/ age.last >= LookUnits) /\ lease /\ lease' = FALSE
       /\ UNCHANGED <<replica, position, lock, there, waited, applied, age, look, found, known, phase>>

Commit ==
    /\ phase = "allowed"
    /\ position' = position + 1 /\ lock' = "nobody" /\ phase' = "idle"
    /\ UNCHANGED <<replica, there, waited, lease, applied, age, look, found, known>>

Rollback ==
    /\ phase # "idle" /\ lock' = "nobody" /\ phase' = "idle"
    /\ UNCHANGED <<replica, position, there, waited, lease, applied, age, look, found, known>>

Min(a, b) == IF a < b THEN a ELSE b

Tick ==
    \E m, w \in {Slow, Fast} :
        /\ waited' = IF there THEN Min(WaitUnits, waited + m) ELSE 0
        /\ age' = [last |-> Min(LookUnits, age.last + w), sent |-> Min(LookUnits, age.sent + w)]
        /\ UNCHANGED <<replica, position, lock, there, lease, applied, look, found, known, phase>>

Next == Join \/ TakeLease \/ Leave \/ Send \/ Read \/ ReadReplica \/ Replicate \/ Answered \/ Lock \/ Allow \/ End \/ Commit \/ Rollback \/ Tick

Spec == Init /\ [][Next]_vars

(* A read by lease shows every event that is committed at that moment. *)
ReadsAreLinearizable == lease => applied = position
=============================================================================
