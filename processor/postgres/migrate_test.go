package postgres

import (
	"sync"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/test/parts"
)

func TestManyProcessesMakeTheTablesAtOnce(t *testing.T) {
	url := parts.Postgres(t)
	var wg sync.WaitGroup
	for range 8 {
		s := New(connect(t, url), Config{Schema: `Odd "name"`, Prefix: "yard_"})
		wg.Go(func() {
			testkit.Check(t, testkit.Err(s.Leases(t.Context(), testGroup)))
		})
	}
	wg.Wait()
}

func TestStoresWithDifferentNamesAreApart(t *testing.T) {
	pool := connect(t, parts.Postgres(t))
	claim(t, New(pool, Config{}), "a", processor.Lease{})
	for _, cfg := range []Config{{Schema: "other"}, {Prefix: "other_"}, {Schema: "public", Prefix: "eventyard_"}} {
		got, err := New(pool, cfg).Leases(t.Context(), testGroup)
		if err != nil || len(got) != 0 {
			t.Errorf("%+v has %v, %v", cfg, got, err)
		}
	}
}

// TestARoleThatMayCreateNothingUsesTablesThatAreThere, made by another beforehand.
func TestARoleThatMayCreateNothingUsesTablesThatAreThere(t *testing.T) {
	ctx := t.Context()
	url := parts.Postgres(t)
	pool := connect(t, url)
	testkit.Must(t, New(pool, Config{}).Migrate(ctx))
	var role string
	err := pool.QueryRow(ctx, "select 'worker_' || replace(gen_random_uuid()::text, '-', '')").Scan(&role)
	if err == nil {
		_, err = pool.Exec(ctx, "create role "+role+"; grant usage on schema eventyard to "+role+
			"; grant select, insert, update, delete on all tables in schema eventyard to "+role)
	}
	testkit.Must(t, err)
	t.Cleanup(func() { pool.Reset() })
	humble := connect(t, url+"&options=-c%20role%3D"+role)
	o := take(t, New(humble, Config{}), "a", processor.Lease{})
	o.saved.Sequence = 3
	testkit.Check(t, testkit.Err(o.store.Save(ctx, testGroup, o.lease, o.saved)))
	if err := New(humble, Config{Schema: "elsewhere"}).Migrate(ctx); err == nil {
		t.Error("the role could create a schema, so nothing was proved")
	}
}
