package org.apache.hadoop.hive.metastore.txn;

import java.net.URI;
import java.util.List;
import java.util.Map;
import org.apache.hadoop.hive.metastore.api.*;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.entities.CompactionInfo;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSocket;

/**
 * Hive's store of transactions whose calls go to the metastore that the configuration names, as far as there is a call for
 * them. The rest (housekeeping, and what only the metastore's own threads do) is done by Hive's class in the same database.
 */
public class TxnStoreOverThrift extends CompactionTxnHandler {
  private interface Call<T> {
    T on(ThriftHiveMetastore.Iface metastore) throws TException;
  }

  private interface Change {
    void on(ThriftHiveMetastore.Iface metastore) throws TException;
  }

  /** A client is used by one thread at a time. */
  private final ThreadLocal<ThriftHiveMetastore.Iface> clients = new ThreadLocal<>();

  private <T> T answer(Call<T> call) {
    try {
      if (clients.get() == null) {
        URI uri = URI.create(MetastoreConf.getVar(getConf(), MetastoreConf.ConfVars.THRIFT_URIS));
        TSocket socket = new TSocket(uri.getHost(), uri.getPort());
        socket.open();
        clients.set(new ThriftHiveMetastore.Client(new TBinaryProtocol(socket)));
      }
      return call.on(clients.get());
    } catch (TException error) {
      throw TxnStoreOverThrift.<RuntimeException>undeclared(error);
    }
  }

  private void change(Change change) {
    answer(
        metastore -> {
          change.on(metastore);
          return null;
        });
  }

  /** The errors are those that the methods of the class declare. */
  @SuppressWarnings("unchecked")
  private static <E extends Exception> E undeclared(Exception error) throws E {
    throw (E) error;
  }

  @Override
  public OpenTxnsResponse openTxns(OpenTxnRequest request) {
    return answer(metastore -> metastore.open_txns(request));
  }

  @Override
  public GetOpenTxnsInfoResponse getOpenTxnsInfo() {
    return answer(metastore -> metastore.get_open_txns_info());
  }

  @Override
  public GetOpenTxnsResponse getOpenTxns() {
    return answer(metastore -> metastore.get_open_txns());
  }

  @Override
  public GetOpenTxnsResponse getOpenTxns(List<TxnType> excluded) {
    GetOpenTxnsRequest request = new GetOpenTxnsRequest();
    request.setExcludeTxnTypes(excluded);
    return answer(metastore -> metastore.get_open_txns_req(request));
  }

  @Override
  public void abortTxn(AbortTxnRequest request) {
    change(metastore -> metastore.abort_txn(request));
  }

  @Override
  public void abortTxns(AbortTxnsRequest request) {
    change(metastore -> metastore.abort_txns(request));
  }

  @Override
  public void commitTxn(CommitTxnRequest request) {
    change(metastore -> metastore.commit_txn(request));
  }

  @Override
  public long getLatestTxnIdInConflict(long id) {
    return answer(metastore -> metastore.get_latest_txnid_in_conflict(id));
  }

  @Override
  public void replTableWriteIdState(ReplTblWriteIdStateRequest request) {
    change(metastore -> metastore.repl_tbl_writeid_state(request));
  }

  /** The client requires the view's name, which the tests omit. */
  @Override
  public Materialization getMaterializationInvalidationInfo(CreationMetadata metadata, String txns) {
    if (!metadata.isSetCatName()) {
      metadata.setCatName("hive");
    }
    return answer(metastore -> metastore.get_materialization_invalidation_info(metadata, txns));
  }

  @Override
  public LockResponse lockMaterializationRebuild(String database, String table, long txn) {
    return answer(metastore -> metastore.get_lock_materialization_rebuild(database, table, txn));
  }

  @Override
  public boolean heartbeatLockMaterializationRebuild(String database, String table, long txn) {
    return answer(metastore -> metastore.heartbeat_lock_materialization_rebuild(database, table, txn));
  }

  @Override
  public GetValidWriteIdsResponse getValidWriteIds(GetValidWriteIdsRequest request) {
    return answer(metastore -> metastore.get_valid_write_ids(request));
  }

  @Override
  public void addWriteIdsToMinHistory(long txn, Map<String, Long> ids) {
    change(metastore -> metastore.add_write_ids_to_min_history(txn, ids));
  }

  @Override
  public AllocateTableWriteIdsResponse allocateTableWriteIds(AllocateTableWriteIdsRequest request) {
    return answer(metastore -> metastore.allocate_table_write_ids(request));
  }

  @Override
  public MaxAllocatedTableWriteIdResponse getMaxAllocatedTableWrited(MaxAllocatedTableWriteIdRequest request) {
    return answer(metastore -> metastore.get_max_allocated_table_write_id(request));
  }

  @Override
  public void seedWriteId(SeedTableWriteIdsRequest request) {
    change(metastore -> metastore.seed_write_id(request));
  }

  @Override
  public void seedTxnId(SeedTxnIdRequest request) {
    change(metastore -> metastore.seed_txn_id(request));
  }

  @Override
  public LockResponse lock(LockRequest request) {
    return answer(metastore -> metastore.lock(request));
  }

  @Override
  public LockResponse checkLock(CheckLockRequest request) {
    return answer(metastore -> metastore.check_lock(request));
  }

  @Override
  public void unlock(UnlockRequest request) {
    change(metastore -> metastore.unlock(request));
  }

  @Override
  public ShowLocksResponse showLocks(ShowLocksRequest request) {
    return answer(metastore -> metastore.show_locks(request));
  }

  @Override
  public void heartbeat(HeartbeatRequest request) {
    change(metastore -> metastore.heartbeat(request));
  }

  @Override
  public HeartbeatTxnRangeResponse heartbeatTxnRange(HeartbeatTxnRangeRequest request) {
    return answer(metastore -> metastore.heartbeat_txn_range(request));
  }

  @Override
  public CompactionResponse compact(CompactionRequest request) {
    return answer(metastore -> metastore.compact2(request));
  }

  @Override
  public boolean submitForCleanup(CompactionRequest request, long highestWriteId, long txn) {
    return answer(metastore -> metastore.submit_for_cleanup(request, highestWriteId, txn));
  }

  @Override
  public ShowCompactResponse showCompact(ShowCompactRequest request) {
    return answer(metastore -> metastore.show_compact(request));
  }

  @Override
  public AbortCompactResponse abortCompactions(AbortCompactionRequest request) {
    return answer(metastore -> metastore.abort_Compactions(request));
  }

  @Override
  public GetLatestCommittedCompactionInfoResponse getLatestCommittedCompactionInfo(
      GetLatestCommittedCompactionInfoRequest request) {
    return answer(metastore -> metastore.get_latest_committed_compaction_info(request));
  }

  @Override
  public void addDynamicPartitions(AddDynamicPartitions request) {
    change(metastore -> metastore.add_dynamic_partitions(request));
  }

  @Override
  public CompactionInfo findNextToCompact(String worker) {
    return CompactionInfo.optionalCompactionInfoStructToInfo(answer(metastore -> metastore.find_next_compact(worker)));
  }

  @Override
  public CompactionInfo findNextToCompact(FindNextCompactRequest request) {
    return CompactionInfo.optionalCompactionInfoStructToInfo(answer(metastore -> metastore.find_next_compact2(request)));
  }

  @Override
  public void updateCompactorState(CompactionInfo info, long txn) {
    change(metastore -> metastore.update_compactor_state(CompactionInfo.compactionInfoToStruct(info), txn));
  }

  @Override
  public List<String> findColumnsWithStats(CompactionInfo info) {
    return answer(metastore -> metastore.find_columns_with_stats(CompactionInfo.compactionInfoToStruct(info)));
  }

  @Override
  public void markCompacted(CompactionInfo info) {
    change(metastore -> metastore.mark_compacted(CompactionInfo.compactionInfoToStruct(info)));
  }

  @Override
  public void markCleaned(CompactionInfo info) {
    change(metastore -> metastore.mark_cleaned(CompactionInfo.compactionInfoToStruct(info)));
  }

  /** Hive's class, too, takes a minor compaction for one that failed before its type was determined. */
  @Override
  public void markFailed(CompactionInfo info) {
    if (info.type == null) {
      info.type = CompactionType.MINOR;
    }
    change(metastore -> metastore.mark_failed(CompactionInfo.compactionInfoToStruct(info)));
  }

  @Override
  public void markRefused(CompactionInfo info) {
    change(metastore -> metastore.mark_refused(CompactionInfo.compactionInfoToStruct(info)));
  }

  @Override
  public void setHadoopJobId(String job, long id) {
    change(metastore -> metastore.set_hadoop_jobid(job, id));
  }
}
