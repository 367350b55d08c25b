//go:build integration

package hive

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/table"
	"github.com/stretchr/testify/require"
)

// Writers with a connection each commit to one table, under its lock: none of their commits is lost.
func TestCommitsOfSeveralWriters(t *testing.T) {
	const writers, rounds = 4, 5
	ctx := context.Background()
	connect := func() *Catalog {
		cat, err := NewCatalog(iceberg.Properties{
			URI:              getTestHiveURI(),
			Warehouse:        getTestTableLocation(),
			LockCheckRetries: "1000",
		})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, cat.Close()) })

		return cat
	}
	cat := connect()
	require.NoError(t, cat.CreateNamespace(ctx, DatabaseIdentifier("Writers"), nil))
	ident := TableIdentifier("Writers", "One")
	schema := iceberg.NewSchema(0,
		iceberg.NestedField{ID: 1, Name: "Id", Type: iceberg.PrimitiveTypes.Int64, Required: true, Doc: "größer"})
	_, err := cat.CreateTable(ctx, ident, schema, catalog.WithProperties(iceberg.Properties{
		table.CommitNumRetriesKey:     "1000",
		table.CommitMinRetryWaitMsKey: "1",
		table.CommitMaxRetryWaitMsKey: "50",
	}))
	require.NoError(t, err)

	commits := func(writer int, own *Catalog) error {
		for round := range rounds {
			tbl, err := own.LoadTable(ctx, ident)
			if err != nil {
				return err
			}
			txn := tbl.NewTransaction()
			if err := txn.SetProperties(iceberg.Properties{fmt.Sprintf("w%d.r%d", writer, round): "1"}); err != nil {
				return err
			}
			if _, err := txn.Commit(ctx); err != nil {
				return err
			}
		}

		return nil
	}
	var group sync.WaitGroup
	failures := make([]error, writers)
	for writer := range writers {
		own := connect()
		group.Go(func() { failures[writer] = commits(writer, own) })
	}
	group.Wait()
	require.Equal(t, make([]error, writers), failures)

	tbl, err := cat.LoadTable(ctx, ident)
	require.NoError(t, err)
	for writer := range writers {
		for round := range rounds {
			require.Equal(t, "1", tbl.Properties()[fmt.Sprintf("w%d.r%d", writer, round)])
		}
	}
	require.Len(t, slices.Collect(tbl.Metadata().PreviousFiles()), writers*rounds)

	// What the table has in the metastore, its parameters among it, is as it was after a new name and the old one.
	before, err := cat.client.GetTable(ctx, "Writers", "One")
	require.NoError(t, err)
	other := TableIdentifier("Writers", "Other")
	_, err = cat.RenameTable(ctx, ident, other)
	require.NoError(t, err)
	_, err = cat.RenameTable(ctx, other, ident)
	require.NoError(t, err)
	after, err := cat.client.GetTable(ctx, "writers", "ONE")
	require.NoError(t, err)
	delete(before.Parameters, "transient_lastDdlTime")
	delete(after.Parameters, "transient_lastDdlTime")
	require.Equal(t, before, after)
}
