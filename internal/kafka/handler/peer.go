package handler

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/kafka/groups"
	"github.com/eventyard/eventyard/internal/storage/paths"
)

// peer is the listener's side of one connection.
type peer struct {
	handler *Handler
	conn    *kafka.Conn // nil: the client is at another node
	log     *slog.Logger
	// lent and from are the rights of a client at another node, and where it comes from; nil: it is here.
	lent *rights
	from string
	// fetcher is the writing goroutine's only.
	fetcher *fetcher
	// ignore ends the news of policies.
	ignore func()

	mu sync.Mutex
	// expiry looks whether the rights have ended by time; nil where they do not. Guarded by mu.
	expiry *time.Timer
	ended  bool // guarded by mu
}

func newPeer(h *Handler, c *kafka.Conn) *peer {
	p := &peer{handler: h, conn: c, log: c.Log()}
	p.fetcher = newFetcher(p)
	p.ignore = h.cfg.Access.OnChange(p.review)
	p.review()
	return p
}

// review ends a connection that has no rights any more, and looks again when their time is over. It is
// called whenever policies have changed.
func (p *peer) review() {
	r := p.rights()
	switch {
	case r.open:
		return
	case r.grant.Expired(time.Now()):
		p.conn.Close(&auth.ExpiredError{At: r.grant.Expires})
		return
	case !r.grant.Opens():
		p.conn.Close(auth.ErrRevoked)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.expiry != nil {
		p.expiry.Stop()
	}
	if !r.grant.Expires.IsZero() && !p.ended {
		p.expiry = time.AfterFunc(time.Until(r.grant.Expires), p.review)
	}
}

// Disconnected frees what the connection had.
func (p *peer) Disconnected() {
	p.ignore()
	p.mu.Lock()
	p.ended = true
	if p.expiry != nil {
		p.expiry.Stop()
	}
	p.mu.Unlock()
	p.fetcher.close()
}

// Begin submits what is produced, and leaves everything else to its turn.
func (p *peer) Begin(ctx context.Context, r *kafka.Request) kafka.Finish {
	if r.Produce != nil {
		return p.produce(ctx, r)
	}
	return func(ctx context.Context, w *kafka.Writer) error {
		if request, ok := r.Body.(*kmsg.FetchRequest); ok {
			return p.fetcher.answer(ctx, request, w)
		}
		answer := p.answer(ctx, groupMember{p, r.ClientID, w.Hurried()}, r.Body)
		if answer == nil {
			return fmt.Errorf("requests of kind %d are not answered here", r.Key)
		}
		return w.Respond(answer)
	}
}

// answer gives the whole answer of a request, which may be one about groups by such a member; nil to one that is not known.
func (p *peer) answer(ctx context.Context, m groupMember, request kmsg.Request) kmsg.Response {
	ctx = p.asks(ctx)
	switch r := request.(type) {
	case *kmsg.MetadataRequest:
		return p.metadata(ctx, r)
	case *kmsg.DescribeTopicPartitionsRequest:
		return p.describePartitions(ctx, r)
	case *kmsg.DescribeClusterRequest:
		return p.describeCluster(r)
	case *kmsg.ListOffsetsRequest:
		return p.listOffsets(ctx, r)
	case *kmsg.OffsetForLeaderEpochRequest:
		return p.offsetsOfEpochs(ctx, r)
	case *kmsg.FindCoordinatorRequest:
		return p.findCoordinator(r)
	case *kmsg.DescribeACLsRequest:
		return p.describeACLs(r)
	case *kmsg.CreateACLsRequest:
		return p.createACLs(r)
	case *kmsg.DeleteACLsRequest:
		return p.deleteACLs(r)
	case *kmsg.DescribeLogDirsRequest:
		return p.describeLogDirs(ctx, r)
	case *kmsg.ListPartitionReassignmentsRequest:
		return p.listReassignments()
	case *kmsg.CreateTopicsRequest:
		return admin{p}.createTopics(ctx, r)
	case *kmsg.DeleteTopicsRequest:
		return admin{p}.deleteTopics(ctx, r)
	case *kmsg.DeleteRecordsRequest:
		return admin{p}.deleteRecords(ctx, r)
	case *kmsg.DescribeProducersRequest:
		return admin{p}.describeProducers(ctx, r)
	case *kmsg.CreatePartitionsRequest:
		return admin{p}.createPartitions(ctx, r)
	case *kmsg.DescribeConfigsRequest:
		return admin{p}.describeConfigs(ctx, r)
	case *kmsg.AlterConfigsRequest:
		return admin{p}.alterConfigs(ctx, r)
	case *kmsg.IncrementalAlterConfigsRequest:
		return admin{p}.changeConfigs(ctx, r)
	}
	if answer := (producers{p}).answer(ctx, request); answer != nil {
		return answer
	}
	return p.answerGroup(ctx, m, request)
}

// asks is a context of what the client asks for: what it changes is put down to it.
func (p *peer) asks(ctx context.Context) context.Context {
	return activity.By(ctx, p.rights().grant.Holder, strings.TrimPrefix(p.host(), "/"))
}

// answerGroup is answer for requests about groups.
func (p *peer) answerGroup(ctx context.Context, m groupMember, request kmsg.Request) kmsg.Response {
	if r := p.rights(); !r.open {
		ctx = groups.For(ctx, r.grant.Account())
	}
	if answer := (forwarder{p}).elsewhere(ctx, m, request); answer != nil {
		return answer
	}
	switch r := request.(type) {
	case *kmsg.JoinGroupRequest:
		return m.joinGroup(ctx, r)
	case *kmsg.SyncGroupRequest:
		return m.syncGroup(ctx, r)
	case *kmsg.HeartbeatRequest:
		return m.heartbeat(ctx, r)
	case *kmsg.LeaveGroupRequest:
		return m.leaveGroup(ctx, r)
	case *kmsg.ConsumerGroupHeartbeatRequest:
		return m.consumerHeartbeat(ctx, r)
	case *kmsg.OffsetCommitRequest:
		return groupOffsets{p}.offsetCommit(ctx, r)
	case *kmsg.TxnOffsetCommitRequest:
		return producers{p}.commitOffsets(ctx, r)
	case *kmsg.OffsetFetchRequest:
		return groupOffsets{p}.offsetFetch(ctx, r)
	case *kmsg.OffsetDeleteRequest:
		return groupOffsets{p}.offsetDelete(ctx, r)
	case *kmsg.DescribeGroupsRequest:
		return groupAdmin{p}.describeGroups(ctx, r)
	case *kmsg.ConsumerGroupDescribeRequest:
		return groupAdmin{p}.describeConsumers(ctx, r)
	case *kmsg.ListGroupsRequest:
		return groupAdmin{p}.listGroups(ctx, r)
	case *kmsg.DeleteGroupsRequest:
		return groupAdmin{p}.deleteGroups(ctx, r)
	}
	return nil
}

// topic is a hub as a client names it: by name, or by the id of one of those that ever had the name.
type topic struct {
	name string
	id   [16]byte
	byID bool
}

// folded is alike for all spellings of a name.
func (t topic) folded() topic {
	t.name = auth.Fold(t.name)
	return t
}

// find gives the hub of a topic to who has a right to it. Without one nobody hears whether it exists.
func (p *peer) find(ctx context.Context, t topic, need auth.Rights) (broker.Hub, error) {
	r := p.rights()
	if !t.byID {
		if !r.allow(t.name, need) {
			return broker.Hub{}, errTopicRights
		}
		return p.handler.cfg.Broker.LookUp(ctx, t.name)
	}
	hub, err := p.handler.cfg.Broker.ByID(ctx, t.id)
	if err != nil {
		return broker.Hub{}, &unknownIDError{err}
	}
	if !r.allow(hub.Name, need) {
		return broker.Hub{}, errTopicRights
	}
	return hub, nil
}

// partition checks a partition's number.
func partition(hub broker.Hub, number int32) error {
	if number >= 0 && int(number) < hub.Partitions {
		return nil
	}
	return &broker.NotFoundError{Kind: broker.KindPartition, Hub: hub.Name, Name: fmt.Sprint(number), Partitions: hub.Partitions}
}

// fail gives the code by which an error is reported. What no row knows is our own fault, and is logged.
func (p *peer) fail(ctx context.Context, what string, err error) int16 {
	code, known := codeOf(err)
	level := slog.LevelDebug
	if !known && ctx.Err() == nil { // what the connection's end brings is no fault
		level = slog.LevelError
	}
	p.log.Log(context.Background(), level, "an error was reported to a client", "request", what, "code", code, "error", err)
	return code
}

// explain is fail with the text that goes with it, in which no file of this machine is named: the log has those.
func (p *peer) explain(ctx context.Context, what string, err error) (code int16, text *string) {
	code = p.fail(ctx, what, err)
	said := paths.Without(err)
	if code == codeUnknown {
		said = "the yard could not do it; its log has more"
	}
	return code, &said
}
