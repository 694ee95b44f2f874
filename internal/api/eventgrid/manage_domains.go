package eventgrid

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/topics"
)

// Domains are topics in all but their path. Their topics are there by name: made, or because
// somebody subscribes to them.

func (c *call) listDomainTopics() error {
	names, err := c.handler.cfg.Topics.DomainTopics(c.names.topic)
	if err != nil {
		return err
	}
	values := []any{}
	for _, name := range names {
		values = append(values, c.showDomainTopic(name))
	}
	return c.replyList(values)
}

func (c *call) getDomainTopic() error {
	names, err := c.handler.cfg.Topics.DomainTopics(c.names.topic)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(names, func(name string) bool { return strings.EqualFold(name, c.names.domainTopic) })
	if at < 0 {
		return c.noDomainTopic()
	}
	return c.replyJSON(http.StatusOK, c.showDomainTopic(names[at]))
}

func (c *call) noDomainTopic() error {
	return fmt.Errorf("%w: domain %.64q has no topic %.64q: make it, or a subscription of it", topics.ErrTopicNotFound, c.names.topic, c.names.domainTopic)
}

func (c *call) showDomainTopic(name string) any {
	t, _ := c.handler.cfg.Topics.Topic(c.names.topic) // one that is gone has no topics to be shown
	return topics.RenderDomainTopicARM(c.moved(t.Resource, t.Group), name)
}

func (c *call) putDomainTopic() error {
	name, err := c.handler.cfg.Topics.MakeDomainTopic(c.R.Context(), c.names.topic, c.names.domainTopic)
	return c.showChanged(c.showDomainTopic(name), err)
}

// deleteDomainTopic deletes its subscriptions, too, by which it would be there.
func (c *call) deleteDomainTopic() error {
	all, err := c.handler.cfg.Topics.Subscriptions(c.source())
	for i := 0; i < len(all) && err == nil; i++ {
		err = c.handler.cfg.Topics.Delete(c.R.Context(), all[i].Source, all[i].Name)
	}
	if err == nil {
		_, err = c.handler.cfg.Topics.UpdateTopic(c.R.Context(), c.names.topic, func(t *topics.Topic) error {
			if t.Domain != nil {
				t.Domain.Remove(c.names.domainTopic)
			}
			return nil
		})
	}
	return c.replyDeleted(err, topics.ErrTopicNotFound)
}
