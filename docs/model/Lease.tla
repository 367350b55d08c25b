------------------------------- MODULE Lease -------------------------------
(***************************************************************************)
(* Exact reads by lease: the rule as a state machine.                      *)
(*                                                                         *)
(* Servers share one database: the position of its notification log, the  *)
(* lock that every writer holds until it commits, and a row for each       *)
(* member. A server answers a read without asking the database while      *)
(* HasLease holds; otherwise it reads the position first.                  *)
(*                                                                         *)
(* A write says what it may change: anything, or single tables. Here it    *)
(* touches a table or does not. A read of that table alone is answered     *)
(* while HasLeaseOfTable holds: writes that do not touch it do not matter. *)
(* A quiet write changes no answer at all: a transaction that begins or    *)
(* ends. Nobody is told of it, and it waits for nobody but the lock.       *)
(*                                                                         *)
(* Time passes in steps. In a step each clock moves by Slow or Fast units, *)
(* whichever it likes: clocks drift, and no two are compared. A process    *)
(* that is stopped is one that takes no step for a while. Messages may be  *)
(* delayed, overtake each other, or be lost.                               *)
(***************************************************************************)
EXTENDS Integers, FiniteSets

CONSTANTS
    Servers,        \* the servers that may join
    MaxWrites,      \* writes that are begun in one behavior
    MaxQuiet,       \* quiet writes in one behavior
    MaxEpoch,       \* joins of one server
    MaxCrashes,     \* crashes in one behavior
    MaxUnknown,     \* COMMITs in one behavior whose outcome the writer does not hear
    Broken          \* the guard that is left out; "none" for the rule itself

Slow == 2           \* units that the slowest clock moves in a step
Fast == 3           \* units that the fastest clock moves in a step
LeaseUnits == 2     \* a lease ends when its holder has counted so many
WaitUnits == 3      \* a writer counts so many: a step even for the fastest clock
NoServer == "nobody"

VARIABLES
    position,   \* committed events
    changed,    \* the last event that changed an answer
    lock,       \* who holds the lock of NOTIFICATION_SEQUENCE
    row,        \* HMS_CACHE_MEMBERS: epoch, whether there may be a lease, whether it was revoked, whether its writes were
                \* fenced, and whether the row is there at all
    epoch,      \* what a server knows to be its own epoch; 0: it is no member
    lease,      \* units that are left of its lease
    renewal,    \* its renewal on the way: how old, in units, and what the database said
    applied,    \* the position of its memory
    floor,      \* below which it answers nothing by lease
    tableFloor, \* below which it does not answer reads of the table by lease
    touched,    \* the last event that touched the table
    intents,    \* writes of which it has not heard the end, and whether they touch the table
    write,      \* its own write
    seen,       \* rows that it has seen revoked, and for how many units
    messages,   \* on the way
    begun,      \* writes begun so far
    quiet,      \* quiet writes so far
    crashes,
    unknown     \* COMMITs of unknown outcome so far

vars == <<position, changed, touched, lock, row, epoch, lease, renewal, applied, floor, tableFloor, intents, write, seen, messages, begun, quiet, crashes, unknown>>
database == <<position, changed, touched, lock, row, quiet>>
floors == <<floor, tableFloor>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Others(s) == Servers \ {s}

NoRenewal == [age |-> 0, good |-> FALSE, isSent |-> FALSE]
NoWrite == [phase |-> "none", key |-> 0, touches |-> FALSE, epoch |-> 0, told |-> {}, need |-> [m \in Servers |-> 0],
            acks |-> [m \in Servers |-> 0], at |-> 0]
Unseen == [epoch |-> 0, waited |-> 0]

Init ==
    /\ position = 0
    /\ lock = NoServer
    /\ row = [s \in Servers |-> [epoch |-> 0, lease |-> FALSE, revoked |-> FALSE, fenced |-> FALSE, there |-> FALSE]]
    /\ epoch = [s \in Servers |-> 0]
    /\ lease = [s \in Servers |-> 0]
    /\ renewal = [s \in Servers |-> NoRenewal]
    /\ applied = [s \in Servers |-> 0]
    /\ floor = [s \in Servers |-> 0]
    /\ tableFloor = [s \in Servers |-> 0]
    /\ changed = 0
    /\ touched = 0
    /\ intents = [s \in Servers |-> {}]
    /\ write = [s \in Servers |-> NoWrite]
    /\ seen = [s \in Servers |-> [m \in Servers |-> Unseen]]
    /\ messages = {}
    /\ begun = 0
    /\ quiet = 0
    /\ crashes = 0
    /\ unknown = 0

HasLease(s) == /\ epoch[s] # 0
               /\ lease[s] > 0
               /\ intents[s] = {}
               /\ applied[s] >= floor[s]

HasLeaseOfTable(s) == /\ epoch[s] # 0
                      /\ lease[s] > 0
                      /\ \A intent \in intents[s] : ~intent[3]
                      /\ applied[s] >= tableFloor[s]

-----------------------------------------------------------------------------
(* Membership *)

(* One transaction under the lock: a writer that takes the lock later sees the row. *)
Join(s) ==
    /\ epoch[s] = 0
    /\ row[s].epoch < MaxEpoch
    /\ write[s].phase = "none"
    /\ lock = NoServer \/ Broken = "join without lock"
    /\ row' = [row EXCEPT ![s] = [epoch |-> row[s].epoch + 1, lease |-> TRUE, revoked |-> FALSE, fenced |-> FALSE, there |-> TRUE]]
    /\ epoch' = [epoch EXCEPT ![s] = row[s].epoch + 1]
    /\ floor' = [floor EXCEPT ![s] = Max(@, position)]
    /\ tableFloor' = [tableFloor EXCEPT ![s] = Max(@, position)]
    /\ UNCHANGED <<position, changed, touched, quiet, lock, lease, renewal, applied, intents, write, seen, messages, begun, crashes, unknown>>

(* The statement is sent and the database reads the row; the answer comes later. *)
Renew(s) ==
    /\ epoch[s] # 0
    /\ ~renewal[s].isSent
    /\ renewal' = [renewal EXCEPT ![s] = [age |-> 0, isSent |-> TRUE,
           good |-> /\ row[s].there /\ row[s].epoch = epoch[s] /\ row[s].lease /\ ~row[s].fenced
                    /\ ~row[s].revoked \/ Broken = "renew a revoked row"]]
    /\ UNCHANGED <<database, epoch, lease, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

(* A lease counts from the sending, not from the answer. Who has lost it may go on as a member that writes, or join
   again. *)
Renewed(s) ==
    /\ renewal[s].isSent
    /\ renewal' = [renewal EXCEPT ![s] = NoRenewal]
    /\ IF renewal[s].good
         THEN /\ lease' = [lease EXCEPT ![s] = IF Broken = "lease from reply" THEN LeaseUnits
                                               ELSE Max(lease[s], LeaseUnits - renewal[s].age)]
              /\ UNCHANGED epoch
         ELSE /\ lease' = [lease EXCEPT ![s] = 0]
              /\ \E e \in {0, epoch[s]} : epoch' = [epoch EXCEPT ![s] = e]
    /\ UNCHANGED <<database, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

-----------------------------------------------------------------------------
(* Reads: one by lease changes nothing; one by position check, and the poller, bring memory up to the log. *)

Check(s) ==
    /\ applied[s] < position
    /\ applied' = [applied EXCEPT ![s] = position]
    /\ UNCHANGED <<database, epoch, lease, renewal, floors, intents, write, seen, messages, begun, crashes, unknown>>

-----------------------------------------------------------------------------
(* Writes *)

(* The epoch of each other member that may hold a lease, 0 for all other servers. *)
Members(s) == [m \in Servers |-> IF m # s /\ row[m].there /\ row[m].lease THEN row[m].epoch ELSE 0]

Writing(s, key, touches, to) == [kind: {"writing"}, from: {s}, key: {key}, touches: {touches}, to: to, number: {0}]
Over(s, kind, number) == [kind: {kind}, from: {s}, key: {write[s].key}, touches: {FALSE}, to: write[s].told, number: {number}]

(* What is said of a write when it begins; and what a server knows of it when it hears its end. *)
Announced(touches) == touches /\ Broken # "a table not told"
Of(s, w, key) == {intent \in intents[s] : intent[1] = w /\ intent[2] = key}
Touched(s, w, key) == Of(s, w, key) = {} \/ \E intent \in Of(s, w, key) : intent[3]

(* After the end of a write. *)
Raise(s, number, touches) ==
    /\ floor' = [floor EXCEPT ![s] = Max(@, number)]
    /\ tableFloor' = IF touches /\ Broken # "written without the table's floor"
                        THEN [tableFloor EXCEPT ![s] = Max(@, number)] ELSE tableFloor

Begin(s, touches) ==
    /\ epoch[s] # 0
    /\ write[s].phase = "none"
    /\ begun < MaxWrites
    /\ LET early == {m \in Others(s) : row[m].there}
           key == begun + 1
       IN /\ begun' = key
          /\ write' = [write EXCEPT ![s] = [NoWrite EXCEPT !.phase = "begun", !.key = key, !.epoch = epoch[s],
                                            !.touches = touches, !.told = early, !.need = Members(s)]]
          /\ intents' = [intents EXCEPT ![s] = @ \cup {<<s, key, Announced(touches)>>}]
          /\ messages' = messages \cup Writing(s, key, Announced(touches), early)
    /\ UNCHANGED <<database, epoch, lease, renewal, applied, floors, seen, crashes, unknown>>

(* The lock is there. The own row must not be fenced: who was stopped cannot commit on old acknowledgements. It stays
   locked until the end, so that nobody can fence it meanwhile. Then the members are read. That the writer's own lease
   was revoked does not matter: else it could not write for as long as the others do and do not hear from it. *)
Locked(s) ==
    /\ write[s].phase = "begun"
    /\ lock = NoServer
    /\ (row[s].there /\ row[s].epoch = write[s].epoch /\ ~row[s].fenced) \/ Broken = "own row not checked"
    /\ lock' = s
    /\ LET need == IF Broken = "members before lock" THEN write[s].need ELSE Members(s)
           late == {m \in Servers : need[m] > 0} \ write[s].told
       IN /\ write' = [write EXCEPT ![s].phase = "gathering", ![s].need = need, ![s].told = @ \cup late]
          /\ messages' = messages \cup Writing(s, write[s].key, Announced(write[s].touches), late)
    /\ UNCHANGED <<position, changed, touched, quiet, row, epoch, lease, renewal, applied, floors, intents, seen, begun, crashes, unknown>>

IsOut(s, m) == /\ seen[s][m].epoch = write[s].need[m]
               /\ seen[s][m].waited >= WaitUnits \/ Broken = "no wait after revoking"
IsMissing(s, m) == /\ write[s].need[m] > 0
                   /\ write[s].acks[m] # write[s].need[m]
                   /\ ~IsOut(s, m)

(* In a transaction of its own. That a row was revoked before says nothing about its lease. *)
Revoke(s, m) ==
    /\ write[s].phase = "gathering"
    /\ m # s /\ IsMissing(s, m)
    /\ seen[s][m].epoch # write[s].need[m]
    /\ row' = [row EXCEPT ![m].revoked = (row[m].epoch = write[s].need[m]) \/ row[m].revoked]
    /\ seen' = [seen EXCEPT ![s][m] = [epoch |-> write[s].need[m], waited |-> 0]]
    /\ UNCHANGED <<position, changed, touched, quiet, lock, epoch, lease, renewal, applied, floors, intents, write, messages, begun, crashes, unknown>>

(* What holds the lock and does not gather: the database may carry out the COMMIT of a writer that has given it up. *)
IsLeft(s) == write[s].phase \in {"unknown", "settled"} /\ lock = s

(* Leases that are over for good are marked with the commit: no other writer has to wait for them. *)
Commit(s) ==
    /\ write[s].phase = "gathering" \/ IsLeft(s)
    /\ \A m \in Servers : ~IsMissing(s, m)
    /\ position' = position + 1
    /\ changed' = position + 1
    /\ touched' = IF write[s].touches THEN position + 1 ELSE touched
    /\ lock' = NoServer
    /\ write' = [write EXCEPT ![s].phase = IF @ = "gathering" THEN "committed" ELSE @, ![s].at = position + 1]
    /\ row' = [m \in Servers |-> IF write[s].need[m] > 0 /\ IsOut(s, m) /\ row[m].epoch = write[s].need[m] /\ row[m].revoked
                                   THEN [row[m] EXCEPT !.lease = FALSE] ELSE row[m]]
    /\ UNCHANGED <<epoch, lease, renewal, applied, floors, intents, seen, messages, begun, quiet, crashes, unknown>>

(* One step: what is done under the lock waits for nobody. It need not be a member's. *)
QuietWrite ==
    /\ lock = NoServer
    /\ quiet < MaxQuiet
    /\ quiet' = quiet + 1
    /\ position' = position + 1
    /\ IF Broken = "a quiet write that changes answers"
         THEN changed' = position + 1 /\ touched' = position + 1
         ELSE UNCHANGED <<changed, touched>>
    /\ UNCHANGED <<lock, row, epoch, lease, renewal, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

(* The answer to COMMIT has come. *)
Told(s) ==
    /\ write[s].phase = "committed"
    /\ Raise(s, write[s].at, Touched(s, s, write[s].key))
    /\ intents' = [intents EXCEPT ![s] = @ \ Of(s, s, write[s].key)]
    /\ messages' = messages \cup Over(s, "written", write[s].at)
    /\ write' = [write EXCEPT ![s] = NoWrite]
    /\ UNCHANGED <<database, epoch, lease, renewal, applied, seen, begun, crashes, unknown>>

(* The connection breaks while COMMIT is under way. *)
GiveUp(s) ==
    /\ unknown < MaxUnknown
    /\ \/ write[s].phase = "gathering" /\ \A m \in Servers : ~IsMissing(s, m)
       \/ write[s].phase = "committed"
    /\ unknown' = unknown + 1
    /\ write' = [write EXCEPT ![s].phase = "unknown"]
    /\ UNCHANGED <<database, epoch, lease, renewal, applied, floors, intents, seen, messages, begun, crashes>>

RollbackLater(s) ==
    /\ IsLeft(s)
    /\ lock' = NoServer
    /\ UNCHANGED <<position, changed, touched, quiet, row, epoch, lease, renewal, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

(* The writer fences itself, which waits for a transaction that still has its row locked; then the position is read. It
   is no member any more. *)
Settle(s) ==
    /\ write[s].phase = "unknown"
    /\ lock # s \/ Broken = "settle without fencing"
    /\ row' = IF Broken = "settle without fencing" THEN row ELSE [row EXCEPT ![s].fenced = TRUE]
    /\ LET number == IF Broken = "settle without position" THEN 0 ELSE position
       IN /\ Raise(s, number, TRUE)
          /\ messages' = messages \cup Over(s, "settled", number)
    /\ intents' = [intents EXCEPT ![s] = @ \ Of(s, s, write[s].key)]
    /\ epoch' = [epoch EXCEPT ![s] = 0]
    /\ lease' = [lease EXCEPT ![s] = 0]
    /\ renewal' = [renewal EXCEPT ![s] = NoRenewal]
    /\ write' = [write EXCEPT ![s] = IF lock = s THEN [@ EXCEPT !.phase = "settled"] ELSE NoWrite]
    /\ UNCHANGED <<position, changed, touched, quiet, lock, applied, seen, begun, crashes, unknown>>

(* For any reason, and always when the own row was found fenced. *)
Rollback(s) ==
    /\ write[s].phase \in {"begun", "gathering"}
    /\ lock' = IF lock = s THEN NoServer ELSE lock
    /\ intents' = [intents EXCEPT ![s] = @ \ Of(s, s, write[s].key)]
    /\ messages' = messages \cup Over(s, "abandoned", 0)
    /\ write' = [write EXCEPT ![s] = NoWrite]
    /\ UNCHANGED <<position, changed, touched, quiet, row, epoch, lease, renewal, applied, floors, seen, begun, crashes, unknown>>

(* The end of a write was not heard: its writer is fenced, which waits for a transaction that has locked the row; then
   the position is read. *)
Tend(s, intent) ==
    LET w == intent[1]
    IN /\ intent \in intents[s] /\ w # s
       /\ lock # w \/ Broken \in {"own row not checked", "forget without fencing"}
       /\ row' = IF Broken = "forget without fencing" THEN row ELSE [row EXCEPT ![w].fenced = TRUE]
       /\ Raise(s, IF Broken = "forget without position" THEN 0 ELSE position, TRUE)
       /\ intents' = [intents EXCEPT ![s] = @ \ {intent}]
       /\ UNCHANGED <<position, changed, touched, quiet, lock, epoch, lease, renewal, applied, write, seen, messages, begun, crashes, unknown>>

(* The row of a member without a lease goes when it was without one for long: the server that left it there is gone.
   For one that is not, it is a fence. *)
Forget(m) ==
    /\ row[m].there
    /\ ~row[m].lease \/ Broken = "forget a lease"
    /\ lock # m
    /\ row' = [row EXCEPT ![m].there = FALSE]
    /\ UNCHANGED <<position, changed, touched, quiet, lock, epoch, lease, renewal, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

-----------------------------------------------------------------------------
(* Messages *)

Receive(m) ==
    LET s == m.to
        intent == <<m.from, m.key, m.touches>>
    IN CASE m.kind = "writing" ->
              /\ intents' = [intents EXCEPT ![s] = IF Broken = "acknowledge and keep the lease" THEN @ ELSE @ \cup {intent}]
              /\ messages' = (messages \ {m}) \cup
                     {[kind |-> "ack", from |-> s, key |-> m.key, touches |-> FALSE, to |-> m.from, number |-> epoch[s]]}
              /\ UNCHANGED <<floors, write>>
         [] m.kind = "ack" ->
              /\ write' = IF write[s].key = m.key THEN [write EXCEPT ![s].acks[m.from] = m.number] ELSE write
              /\ messages' = messages \ {m}
              /\ UNCHANGED <<intents, floors>>
         [] OTHER ->
              /\ intents' = [intents EXCEPT ![s] = @ \ Of(s, m.from, m.key)]
              /\ Raise(s, IF Broken = "written without floor" THEN 0 ELSE m.number,
                       Touched(s, m.from, m.key) \/ m.kind = "settled")
              /\ messages' = messages \ {m}
              /\ UNCHANGED write

Deliver == \E m \in messages : Receive(m) /\ UNCHANGED <<database, epoch, lease, renewal, applied, seen, begun, crashes, unknown>>

Lose == \E m \in messages : /\ messages' = messages \ {m}
                            /\ UNCHANGED <<database, epoch, lease, renewal, applied, floors, intents, write, seen, begun, crashes, unknown>>

-----------------------------------------------------------------------------
(* Time and faults *)

Tick ==
    \E speed \in [Servers -> {Slow, Fast}] :
        /\ lease' = [s \in Servers |-> Max(0, lease[s] - speed[s])]
        /\ renewal' = [s \in Servers |-> IF renewal[s].isSent
                          THEN [renewal[s] EXCEPT !.age = Min(LeaseUnits, @ + speed[s])] ELSE renewal[s]]
        /\ seen' = [s \in Servers |-> [m \in Servers |-> IF seen[s][m].epoch = 0 THEN Unseen
                          ELSE [seen[s][m] EXCEPT !.waited = Min(WaitUnits, @ + speed[s])]]]
        /\ UNCHANGED <<database, epoch, applied, floors, intents, write, messages, begun, crashes, unknown>>

(* The process is gone, and its transaction with it; its row stays. *)
Crash(s) ==
    /\ crashes < MaxCrashes
    /\ crashes' = crashes + 1
    /\ lock' = IF lock = s THEN NoServer ELSE lock
    /\ epoch' = [epoch EXCEPT ![s] = 0]
    /\ lease' = [lease EXCEPT ![s] = 0]
    /\ renewal' = [renewal EXCEPT ![s] = NoRenewal]
    /\ applied' = [applied EXCEPT ![s] = 0]
    /\ floor' = [floor EXCEPT ![s] = 0]
    /\ tableFloor' = [tableFloor EXCEPT ![s] = 0]
    /\ intents' = [intents EXCEPT ![s] = {}]
    /\ write' = [write EXCEPT ![s] = NoWrite]
    /\ seen' = [seen EXCEPT ![s] = [m \in Servers |-> Unseen]]
    /\ UNCHANGED <<position, changed, touched, quiet, row, messages, begun, unknown>>

(* In order: the row goes with the server once it has given up its lease. *)
Leave(s) ==
    /\ epoch[s] # 0 /\ row[s].epoch = epoch[s]
    /\ write[s].phase = "none"
    /\ lease[s] = 0
    /\ ~renewal[s].isSent
    /\ row' = [row EXCEPT ![s].there = FALSE]
    /\ epoch' = [epoch EXCEPT ![s] = 0]
    /\ UNCHANGED <<position, changed, touched, quiet, lock, lease, renewal, applied, floors, intents, write, seen, messages, begun, crashes, unknown>>

Next ==
    \/ Tick \/ Deliver \/ Lose \/ QuietWrite
    \/ \E s \in Servers :
          \/ Join(s) \/ Renew(s) \/ Renewed(s) \/ Leave(s) \/ Crash(s)
          \/ Check(s) \/ Forget(s)
          \/ \E touches \in BOOLEAN : Begin(s, touches)
          \/ Locked(s) \/ Commit(s) \/ Told(s) \/ Rollback(s)
          \/ GiveUp(s) \/ RollbackLater(s) \/ Settle(s)
          \/ \E m \in Servers : Revoke(s, m)
          \/ \E intent \in intents[s] : Tend(s, intent)

(* What a process that is not stopped does in the end. *)
Fairness ==
    /\ WF_vars(Tick)
    /\ \A s \in Servers : /\ WF_vars(Commit(s))
                          /\ WF_vars(Told(s))
                          /\ \A m \in Servers : WF_vars(Revoke(s, m))

Spec == Init /\ [][Next]_vars
FairSpec == Spec /\ Fairness

-----------------------------------------------------------------------------
(* What is to hold *)

(* A read that is answered by lease shows every event that is committed at that moment and changed an answer. *)
ReadsAreLinearizable == \A s \in Servers : HasLease(s) => applied[s] >= changed

(* One of the table alone shows every event that touched it. *)
ReadsOfTheTableAreLinearizable == \A s \in Servers : HasLeaseOfTable(s) => applied[s] >= touched

(* Whoever holds the lock lets go of it, whatever the other members do. *)
NoDeadlock == \A s \in Servers : lock = s ~> lock # s

(* The lock belongs to the one write that gathers acknowledgements, or is left to the database. *)
LockIsOfTheWriter == \A s \in Servers : /\ write[s].phase = "gathering" => lock = s
                                        /\ lock = s => write[s].phase = "gathering" \/ IsLeft(s)
=============================================================================
