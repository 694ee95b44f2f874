package console

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// changeTopic sets what of a topic can be changed: its schema is part of what its publishers rely on, and cannot.
var changeTopic = action{
	path: base + "topics/{topic}/settings", calls: []string{"PATCH /api/v1/topics/{topic}"},
	sheet: func(v *visit) (*sheet, error) {
		t, err := v.api.Topic(v.ctx, v.name("topic"))
		if err != nil {
			return nil, err
		}
		s := &sheet{
			Title: "Settings of " + t.Name, About: "What is beyond a limit is refused, and its publisher is told when to try again. The schema of a topic cannot be changed.",
			Back: at("topics", t.Name), Command: command("topic", "update", t.Name, "--quota-events", strconv.Itoa(t.Quota.Events)),
			Fields: []field{
				{Name: "events", Label: "Events accepted per second", Kind: "number", Value: v.value("events", strconv.Itoa(t.Quota.Events)), Hint: "0: no limit."},
				{Name: "bytes", Label: "Bytes accepted per second", Kind: "number", Value: v.value("bytes", strconv.FormatInt(t.Quota.Bytes, 10)), Hint: "0: no limit."},
				{Name: "keys", Label: "The topic's keys", Kind: "select", Value: v.value("keys", keysWord(t.DisableKeys)),
					Options: []option{{keysGood, "let publishers in"}, {keysRefused, "are refused: only tokens and policies of the yard let in"}}},
			},
			Buttons: []button{{"Save", "main", act}},
		}
		if t.Schema == "custom" {
			s.Fields = append(s.Fields, field{Name: "mapping", Label: "Where its events have what an envelope needs", Kind: "area", Value: v.value("mapping", filterText(t.Mapping)), Hint: "JSON. Empty: as it is."})
		}
		return s, nil
	},
	do: func(v *visit) (outcome, error) {
		events, err := v.integer("events")
		if err != nil {
			return outcome{}, err
		}
		bytes, err := v.integer("bytes")
		if err != nil {
			return outcome{}, err
		}
		r := admin.TopicRequest{Quota: &admin.QuotaRequest{Events: events}}
		if bytes != nil {
			r.Quota.Bytes = new(int64(*bytes))
		}
		if keys := v.filled("keys"); keys != nil {
			r.DisableKeys = new(*keys == keysRefused)
		}
		if mapping := strings.TrimSpace(v.r.PostFormValue("mapping")); mapping != "" {
			if !json.Valid([]byte(mapping)) {
				return outcome{}, wrongInput("The mapping is not JSON. Nothing was changed.")
			}
			r.Mapping = json.RawMessage(mapping)
		}
		t, err := v.api.UpdateTopic(v.ctx, v.name("topic"), r)
		return outcome{to: at("topics", t.Name), done: "changed"}, err
	},
}

// Whether a topic's keys let publishers in, as its form has it.
const keysGood, keysRefused = "accepted", "refused"

func keysWord(disabled bool) string {
	if disabled {
		return keysRefused
	}
	return keysGood
}
