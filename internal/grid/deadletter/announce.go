package deadletter

import (
	"context"
	"encoding/json"
	"time"

	"github.com/eventyard/eventyard/internal/grid/hops"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

// announcement is the event that reports a write, in the stored form of Event Grid's schema.
type announcement struct {
	ID        string        `json:"id"`
	Subject   string        `json:"subject"`
	EventType string        `json:"eventType"`
	EventTime string        `json:"eventTime"`
	Data      announcedData `json:"data"`
}

// announcedData has what the storage service's event has, and more.
type announcedData struct {
	API           string `json:"api,omitempty"` // of blobs only
	ContentType   string `json:"contentType"`
	ContentLength int    `json:"contentLength"`
	BlobType      string `json:"blobType,omitempty"` // of blobs only
	URL           string `json:"url"`
	Subscription  string `json:"subscription"`
	Topic         string `json:"topic,omitempty"`
	SourceHub     string `json:"sourceHub,omitempty"`
	DomainTopic   string `json:"domainTopic,omitempty"`
	Letters       int    `json:"letters"`
	Reason        string `json:"reason"` // of the first
}

// announce publishes that letters were written, before that is noted: after a crash it is published
// again, with the same id. Writes for the yard's own topic are not announced, or a receiver that
// fails would feed itself.
func (s *Service) announce(ctx context.Context, sub *topics.Subscription, l load, w put) {
	if sub.Source.Topic == topics.YardEvents {
		return
	}
	kind, api, blob := "Microsoft.Storage.BlobCreated", "PutBlob", "BlockBlob"
	if sub.DeadLetter.Kind == topics.TargetHub {
		kind, api, blob = "Eventyard.DeadLetters.Sent", "", ""
	}
	event, err := json.Marshal(announcement{
		ID: l.letters[0].guid(sub.ID), Subject: w.subject, EventType: kind, EventTime: time.Now().UTC().Format(time.RFC3339Nano),
		Data: announcedData{
			API: api, ContentType: "application/json", ContentLength: w.bytes, BlobType: blob, URL: w.url,
			Subscription: sub.Name, Topic: sub.Source.Topic, DomainTopic: sub.Source.DomainTopic, SourceHub: sub.Source.Hub,
			Letters: len(l.letters) - len(w.without), Reason: l.letters[0].Reason,
		},
	})
	if err == nil {
		passed := 0 // a write is a hop: its announcement may be what leads to the next
		for i := range l.letters {
			passed = max(passed, l.letters[i].Hops)
		}
		err = s.cfg.Topics.Announce(hops.With(ctx, passed+1), [][]byte{event})
	}
	if err != nil {
		s.cfg.Log.Warn("a write of dead letters could not be announced", "subscription", sub.Name, "error", err)
	}
}
