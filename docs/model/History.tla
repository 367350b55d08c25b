------------------------------ MODULE History ------------------------------
(***************************************************************************)
(* A database that goes back, and a poller that is paused, beside leases.  *)
(*                                                                         *)
(* The database goes back to what it was once: a failover to a replica     *)
(* that lacks the last commits, which is noticed by the name of the        *)
(* server, or a dump that is restored in place, which is not. Events are   *)
(* lost, and their ids are given to others. Rows of members are what they  *)
(* were: without one that joined since, or without what was revoked and    *)
(* fenced since.                                                           *)
(*                                                                         *)
(* One member reads and one writes; Lease.tla is about all that they do    *)
(* while the database does not go back. A log is a sequence of writes, of  *)
(* which no two are equal. A read that is answered by lease shows all that *)
(* is committed in the log that there is. It may show what was lost,       *)
(* too, until there is a write in the new history, or another read of the  *)
(* same server has shown that it is lost, as reads do during a pause.      *)
(*                                                                         *)
(* Time passes as in Lease.tla. Messages may overtake each other, and one  *)
(* that is never received is lost.                                         *)
(***************************************************************************)
EXTENDS Integers, Sequences

CONSTANTS
    MaxWrites,      \* writes that are begun in one behavior
    MaxEpoch,       \* joins of the reader
    MaxJoins,       \* joins of the writer
    MaxReturns,     \* how often the database goes back
    MaxPauses,      \* pauses of the reader's poller
    IsSlow,         \* whether the poller takes time between reading the log and taking what it read
    Kinds,          \* how it goes back: "failover", "restore"
    Broken          \* the guard that is left out; "none" for the rule itself

Slow == 2
Fast == 3
LeaseUnits == 2     \* a lease ends when its holder has counted so many
WaitUnits == 3      \* the writer counts so many
Nowhere == 0        \* no database server; they are numbered from 1
OnTheWay == 99      \* more than any log is long

VARIABLES
    \* The database
    log,        \* what is committed
    server,     \* its name
    row,        \* the reader's row: epoch, whether there may be a lease, whether it was revoked, whether it is there
    own,        \* the writer's row: epoch, whether its writes were fenced, whether it is there
    copy,       \* what the replica has got, or the dump
    returns,    \* how often it went back
    \* The reader
    memory,     \* the log that its memory is made of
    follows,    \* the database server of which it has that
    epoch,      \* 0: it is no member
    used,       \* its last epoch
    lease,      \* units that are left
    renewal,    \* on the way
    floor,      \* below which it answers nothing by lease
    intents,    \* writes of which it has not heard the end, and how far memory was when it heard of them, or will be when
                \* it has taken a page that was on the way; -1: unknown
    doubt,      \* the log is to be looked at
    paused,
    needsProof, \* nothing was proven since a pause
    page,       \* a look at the log, on the way
    shown,      \* in which history the last read during a pause was answered
    \* The writer
    writer,
    joins,      \* its last epoch
    seen,       \* the reader's epoch that it has seen revoked, and for how many units
    known,      \* the database server that it knows
    left,       \* units for which it still waits for leases of before
    \* Both
    messages,
    begun,      \* writes begun so far
    pauses

database == <<log, server, row, own, copy, returns>>
ofLease == <<epoch, used, lease, renewal>>
ofWrites == <<floor, intents, doubt>>
ofLog == <<memory, follows, page>>
ofPause == <<paused, needsProof, shown, pauses>>
ofWriter == <<writer, joins, seen, known, left, begun>>
vars == <<database, ofLease, ofWrites, ofLog, ofPause, ofWriter, messages>>

Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Extends(a, b) == Len(b) <= Len(a) /\ SubSeq(a, 1, Len(b)) = b

NoRow == [there |-> FALSE, epoch |-> 0, lease |-> FALSE, revoked |-> FALSE]
NoOwn == [there |-> FALSE, epoch |-> 0, fenced |-> FALSE]
NoCopy == [there |-> FALSE, log |-> <<>>, row |-> NoRow, own |-> NoOwn]
NoRenewal == [isSent |-> FALSE, age |-> 0, epoch |-> 0, server |-> Nowhere, good |-> FALSE]
NoPage == [isSent |-> FALSE, log |-> <<>>, server |-> Nowhere, isOld |-> FALSE, verifies |-> FALSE]
NoWrite == [phase |-> "none", key |-> 0, epoch |-> 0, need |-> 0, ack |-> 0, at |-> 0, last |-> 0]
Unseen == [epoch |-> 0, waited |-> 0]

(* There may have been a write before, 0, and memory may not have it. *)
Init ==
    /\ log \in {<<>>, <<0>>} /\ server = 1 /\ row = NoRow /\ own = NoOwn /\ copy = NoCopy /\ returns = 0
    /\ memory \in {log, <<>>} /\ follows = 1 /\ page = NoPage
    /\ epoch = 0 /\ used = 0 /\ lease = 0 /\ renewal = NoRenewal
    /\ floor = 0 /\ intents = {} /\ doubt = FALSE
    /\ paused = FALSE /\ needsProof = FALSE /\ shown = 0 /\ pauses = 0
    /\ writer = NoWrite /\ joins = 0 /\ seen = Unseen /\ known = Nowhere /\ left = 0 /\ begun = 0
    /\ messages = {}

HasLease ==
    /\ epoch # 0
    /\ lease > 0
    /\ intents = {}
    /\ Len(memory) >= floor
    /\ ~doubt
    /\ ~paused
    /\ ~needsProof \/ Broken = "no proof after a pause"

-----------------------------------------------------------------------------
(* The reader as a member *)

(* A doubt is settled by a look that was sent after it had come up. *)
Doubts(is) ==
    /\ doubt' = (doubt \/ is)
    /\ page' = IF is THEN [page EXCEPT !.verifies = FALSE] ELSE page

(* Under the lock. Of the writes that ended before it may have heard nothing: that the log ends where memory does says
   nothing about its events. *)
Join ==
    /\ epoch = 0 /\ used < MaxEpoch
    /\ writer.phase # "gathering"
    /\ used' = used + 1 /\ epoch' = used + 1
    /\ row' = [there |-> TRUE, epoch |-> used + 1, lease |-> TRUE, revoked |-> FALSE]
    /\ floor' = Max(floor, Len(log))
    /\ Doubts(Broken # "joined without a look" \/ Len(log) < Len(memory))
    /\ UNCHANGED <<log, server, own, copy, returns, memory, follows, lease, renewal, intents, ofPause, ofWriter, messages>>

(* The primary answers, or the replica, which may not have heard of a revocation. *)
Renewal(name, of) ==
    [isSent |-> TRUE, age |-> 0, epoch |-> epoch, server |-> name,
     good |-> of.there /\ of.epoch = epoch /\ of.lease /\ ~of.revoked]

Renew ==
    /\ epoch # 0 /\ ~renewal.isSent
    /\ \/ renewal' = Renewal(server, row)
       \/ "failover" \in Kinds /\ copy.there /\ renewal' = Renewal(server + 1, copy.row)
    /\ UNCHANGED <<database, epoch, used, lease, ofWrites, ofLog, ofPause, ofWriter, messages>>

(* It counts in the history that memory is of, and after a pause not before that is proven again. *)
Renewed ==
    /\ renewal.isSent
    /\ renewal' = NoRenewal
    /\ CASE renewal.epoch # epoch -> UNCHANGED <<lease, epoch>>
         [] renewal.epoch = epoch /\ ~renewal.good -> lease' = 0 /\ epoch' = 0
         [] OTHER -> /\ lease' = IF (renewal.server = follows /\ ~needsProof) \/ Broken = "a renewal of another server"
                                   THEN Max(lease, LeaseUnits - renewal.age) ELSE lease
                     /\ UNCHANGED epoch
    /\ UNCHANGED <<database, used, ofWrites, ofLog, ofPause, ofWriter, messages>>

-----------------------------------------------------------------------------
(* The reader's poller. What it reads is proven by the row that memory stands on. *)

LogAsItIs == [isSent |-> TRUE, log |-> log, server |-> server, isOld |-> FALSE, verifies |-> TRUE]

(* If the log is another one, everything is dropped. If the poller was paused meanwhile, nothing is done, and the next
   look tells. *)
Taken(found) ==
    /\ page' = NoPage
    /\ IF found.server = follows /\ Extends(found.log, memory)
         THEN /\ memory' = found.log
              /\ intents' = {<<intent[1], IF intent[2] = OnTheWay THEN Len(found.log) ELSE intent[2]>> : intent \in intents}
              /\ doubt' = (doubt /\ ~found.verifies)
              /\ needsProof' = (needsProof /\ found.isOld /\ Broken # "a look of before the pause proves")
              /\ UNCHANGED <<follows, epoch, lease, floor>>
         ELSE IF found.isOld
         THEN UNCHANGED <<memory, follows, epoch, lease, floor, intents, doubt, needsProof>>
         ELSE /\ memory' = log /\ follows' = server
              /\ epoch' = 0 /\ lease' = 0 /\ floor' = 0
              /\ intents' = {<<intent[1], -1>> : intent \in intents}
              /\ doubt' = FALSE /\ needsProof' = FALSE
    /\ UNCHANGED <<database, used, renewal, paused, shown, pauses, ofWriter, messages>>

Look == ~IsSlow /\ ~paused /\ Taken(LogAsItIs)

Send ==
    /\ IsSlow /\ ~paused /\ ~page.isSent
    /\ page' = LogAsItIs
    /\ UNCHANGED <<database, ofLease, ofWrites, memory, follows, ofPause, ofWriter, messages>>

Take == page.isSent /\ Taken(page)

Pause ==
    /\ ~paused /\ pauses < MaxPauses
    /\ paused' = TRUE /\ pauses' = pauses + 1
    /\ page' = [page EXCEPT !.isOld = page.isSent]
    /\ UNCHANGED <<database, ofLease, ofWrites, memory, follows, needsProof, shown, ofWriter, messages>>

Resume ==
    /\ paused
    /\ paused' = FALSE /\ needsProof' = TRUE
    /\ page' = [page EXCEPT !.isOld = page.isSent]
    /\ UNCHANGED <<database, ofLease, ofWrites, memory, follows, shown, pauses, ofWriter, messages>>

(* During a pause the database answers. *)
ReadInPause ==
    /\ paused /\ shown' = returns
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, paused, needsProof, pauses, ofWriter, messages>>

-----------------------------------------------------------------------------
(* The writer *)

(* Leases of before are waited for: on another database server, and where the row of its last epoch is gone, those of
   others may be gone, too. *)
WaitFor(is) == left' = IF is THEN WaitUnits ELSE left
IsAnother == known # Nowhere /\ known # server

JoinWriter ==
    /\ writer.phase = "none" /\ writer.epoch = 0 /\ joins < MaxJoins
    /\ joins' = joins + 1
    /\ own' = [there |-> TRUE, epoch |-> joins + 1, fenced |-> FALSE]
    /\ writer' = [writer EXCEPT !.epoch = joins + 1]
    /\ known' = IF Broken = "the server known from the first write" THEN known ELSE server
    /\ WaitFor(\/ IsAnother
               \/ joins > 0 /\ CASE Broken = "own row gone without a wait" -> FALSE
                                 [] Broken = "any own row will do" -> ~own.there
                                 [] OTHER -> ~own.there \/ own.epoch # joins)
    /\ UNCHANGED <<log, server, row, copy, returns, ofLease, ofWrites, ofLog, ofPause, seen, begun, messages>>

(* For any reason: its row is gone, or its own memory was of another log. *)
LeaveToJoin ==
    /\ writer.phase = "none" /\ writer.epoch # 0 /\ joins < MaxJoins
    /\ writer' = [writer EXCEPT !.epoch = 0]
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left, begun, messages>>

Message(kind, key, number) == [kind |-> kind, key |-> key, number |-> number]

Begin ==
    /\ writer.phase = "none" /\ writer.epoch # 0 /\ begun < MaxWrites
    /\ begun' = begun + 1
    /\ writer' = [writer EXCEPT !.phase = "begun", !.key = begun + 1, !.need = 0, !.ack = 0, !.at = 0]
    /\ messages' = messages \cup {Message("writing", begun + 1, 0)}
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left>>

IsOwn == own.there /\ own.epoch = writer.epoch /\ ~own.fenced

(* The lock is there, and the server is asked for its name. What was seen of a row that is not revoked any more counts no
   more. *)
Locked ==
    /\ writer.phase = "begun" /\ IsOwn
    /\ writer' = [writer EXCEPT !.phase = "gathering", !.need = IF row.there /\ row.lease THEN row.epoch ELSE 0]
    /\ known' = server
    /\ WaitFor(IsAnother /\ Broken # "no wait on another server")
    /\ seen' = IF row.revoked \/ Broken = "seen revoked for good" THEN seen ELSE Unseen
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, ofPause, joins, begun, messages>>

IsOut == seen.epoch = writer.need /\ seen.waited >= WaitUnits
IsMissing == writer.need > 0 /\ writer.ack # writer.need /\ ~IsOut

Revoke ==
    /\ writer.phase = "gathering" /\ IsMissing /\ seen.epoch # writer.need
    /\ row' = [row EXCEPT !.revoked = @ \/ row.epoch = writer.need]
    /\ seen' = [epoch |-> writer.need, waited |-> 0]
    /\ UNCHANGED <<log, server, own, copy, returns, ofLease, ofWrites, ofLog, ofPause, writer, joins, known, left, begun, messages>>

Commit ==
    /\ writer.phase = "gathering" /\ ~IsMissing /\ left = 0
    /\ log' = Append(log, writer.key)
    /\ row' = IF writer.need > 0 /\ IsOut /\ row.epoch = writer.need /\ row.revoked THEN [row EXCEPT !.lease = FALSE] ELSE row
    /\ writer' = [writer EXCEPT !.phase = "committed", !.at = Len(log) + 1]
    /\ UNCHANGED <<server, own, copy, returns, ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left, begun, messages>>

Told ==
    /\ writer.phase = "committed"
    /\ messages' = messages \cup {Message("written", writer.key, writer.at)}
    /\ writer' = [NoWrite EXCEPT !.epoch = writer.epoch, !.last = Max(writer.last, writer.at)]
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left, begun>>

(* For any reason, and always where its row is gone or fenced: then it is no member any more. *)
Rollback ==
    /\ writer.phase \in {"begun", "gathering", "lost"}
    /\ messages' = messages \cup {Message("abandoned", writer.key, 0)}
    /\ writer' = [NoWrite EXCEPT !.epoch = IF IsOwn THEN writer.epoch ELSE 0, !.last = writer.last]
    /\ UNCHANGED <<database, ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left, begun>>

-----------------------------------------------------------------------------
(* Messages, and what is done where they are lost *)

Of(key) == {intent \in intents : intent[1] = key}

Receive(m) ==
    CASE m.kind = "writing" ->
           /\ intents' = IF Of(m.key) # {} THEN intents
                         ELSE intents \cup {<<m.key, IF epoch = 0 THEN -1
                                                     ELSE IF page.isSent /\ Broken # "a page on the way" THEN OnTheWay
                                                     ELSE Len(memory)>>}
           /\ messages' = (messages \ {m}) \cup {Message("ack", m.key, epoch)}
           /\ UNCHANGED <<floor, doubt, page, writer>>
      [] m.kind = "ack" ->
           /\ writer' = IF writer.key = m.key /\ writer.phase # "none" THEN [writer EXCEPT !.ack = m.number] ELSE writer
           /\ messages' = messages \ {m}
           /\ UNCHANGED <<floor, intents, doubt, page>>
      [] m.kind = "written" ->
           /\ intents' = intents \ Of(m.key)
           /\ floor' = Max(floor, m.number)
           /\ Doubts(Broken # "written below memory" /\ \E intent \in Of(m.key) : m.number <= intent[2])
           /\ messages' = messages \ {m}
           /\ UNCHANGED writer
      [] m.kind = "abandoned" ->
           /\ intents' = intents \ Of(m.key)
           /\ messages' = messages \ {m}
           /\ UNCHANGED <<floor, doubt, page, writer>>

Deliver == \E m \in messages :
    /\ Receive(m)
    /\ UNCHANGED <<database, ofLease, memory, follows, ofPause, joins, seen, known, left, begun>>

(* On a new connection: the write is over, and was none after the last event of the writer. *)
Over == \E intent \in intents :
    /\ ~(writer.key = intent[1] /\ writer.phase # "none")
    /\ intents' = intents \ {intent}
    /\ floor' = Max(floor, writer.last)
    /\ Doubts(Broken # "over without a look")
    /\ UNCHANGED <<database, ofLease, memory, follows, ofPause, ofWriter, messages>>

(* The writer is fenced, then the position is read, both in the history that memory is of. *)
Tend == \E intent \in intents :
    /\ writer.phase # "gathering"
    /\ server = follows /\ ~needsProof
    /\ own' = [own EXCEPT !.fenced = TRUE]
    /\ intents' = intents \ {intent}
    /\ floor' = Max(floor, Len(log))
    /\ Doubts(Broken # "tended without a look" \/ Len(log) < Len(memory))
    /\ UNCHANGED <<log, server, row, copy, returns, ofLease, memory, follows, ofPause, ofWriter, messages>>

-----------------------------------------------------------------------------
(* Time, and the database that goes back *)

Tick ==
    \E r, w \in {Slow, Fast} :
        /\ lease' = Max(0, lease - r)
        /\ renewal' = IF renewal.isSent THEN [renewal EXCEPT !.age = Min(LeaseUnits, @ + r)] ELSE renewal
        /\ seen' = IF seen.epoch = 0 THEN seen ELSE [seen EXCEPT !.waited = Min(WaitUnits, @ + w)]
        /\ left' = Max(0, left - w)
        /\ UNCHANGED <<database, epoch, used, ofWrites, ofLog, ofPause, writer, joins, known, begun, messages>>

(* The replica gets no more than this; the dump is made. The write of before may have come later than the rows. *)
Copy ==
    /\ ~copy.there /\ returns < MaxReturns
    /\ \E had \in {log, <<>>} : copy' = [there |-> TRUE, log |-> had, row |-> row, own |-> own]
    /\ UNCHANGED <<log, server, row, own, returns, ofLease, ofWrites, ofLog, ofPause, ofWriter, messages>>

GoBack ==
    /\ copy.there
    /\ returns' = returns + 1 /\ copy' = NoCopy
    /\ log' = copy.log /\ row' = copy.row /\ own' = copy.own
    /\ UNCHANGED <<ofLease, ofWrites, ofLog, ofPause, joins, seen, known, left, begun, messages>>

(* The copy has what makes the writer wait for the reader, if that may hold a lease. *)
HasReader == epoch = 0 \/ (copy.row.there /\ copy.row.epoch = epoch /\ copy.row.lease)

(* Open transactions end with the old primary. It is a limit of the rule that a server which joins for the first time
   cannot know of the failover: it must not within a lease. *)
Failover ==
    /\ "failover" \in Kinds
    /\ joins > 0 \/ HasReader \/ Broken = "a server that starts then"
    /\ GoBack
    /\ server' = server + 1
    /\ writer' = IF writer.phase \in {"begun", "gathering"} THEN [writer EXCEPT !.phase = "lost"] ELSE writer

(* Nobody writes meanwhile. It is a limit that a writer whose own row is the same as before cannot know that the dump
   lacks another one. *)
Restore ==
    /\ "restore" \in Kinds
    /\ writer.phase = "none"
    /\ \/ HasReader
       \/ joins > 0 /\ ~(copy.own.there /\ copy.own.epoch = joins)
       \/ Broken = "a dump that lacks the reader alone"
    /\ GoBack
    /\ UNCHANGED <<server, writer>>

Next ==
    \/ Join \/ Renew \/ Renewed \/ Look \/ Send \/ Take \/ Pause \/ Resume \/ ReadInPause
    \/ JoinWriter \/ LeaveToJoin \/ Begin \/ Locked \/ Revoke \/ Commit \/ Told \/ Rollback
    \/ Deliver \/ Over \/ Tend
    \/ Tick \/ Copy \/ Failover \/ Restore

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What is to hold *)

(* A read that is answered by lease shows every event that is committed in the history that there is. *)
ReadsShowWhatIsCommitted == HasLease => Extends(memory, log)

(* What another read of this server, during a pause, has shown to be lost is not shown again (P3). *)
NothingComesBack == HasLease /\ returns > 0 /\ shown = returns => Extends(log, memory)
=============================================================================
