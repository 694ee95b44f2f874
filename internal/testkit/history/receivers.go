package history

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// Receivers is a history of a partition that receivers take over from each other, each by an epoch that
// is higher than all before it, and of what they receive. Its zero value is empty.
type Receivers struct{ recorder }

type receiverCall struct {
	epoch    int64
	receives bool
}

// TakeOver records that an epoch has taken the partition over, at some moment since begun.
func (r *Receivers) TakeOver(begun Moment, epoch int64) {
	r.add(int(epoch), begun, r.Now(), receiverCall{epoch: epoch}, true)
}

// Refused records that an epoch was refused, for a higher one that had the partition at some moment
// since begun.
func (r *Receivers) Refused(begun Moment, epoch int64) {
	r.add(int(epoch), begun, r.Now(), receiverCall{epoch: epoch}, false)
}

// Receive records that an epoch has received something by now that was sent after a moment: it had the
// partition at one between them.
func (r *Receivers) Receive(sent Moment, epoch int64) {
	r.add(int(epoch), sent, r.Now(), receiverCall{epoch: epoch, receives: true}, true)
}

// Check gives an error where two had the partition at once.
func (r *Receivers) Check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return check(receivers, r.calls)
}

// receivers has the epoch that has the partition as its state.
var receivers = porcupine.Model{
	Init: func() any { return int64(-1) },
	Step: func(state, input, output any) (bool, any) {
		holds, c := state.(int64), input.(receiverCall)
		switch {
		case c.receives:
			return holds == c.epoch, holds
		case !output.(bool):
			return holds > c.epoch, holds
		default:
			return holds <= c.epoch, c.epoch
		}
	},
	DescribeOperation: func(input, output any) string {
		c := input.(receiverCall)
		switch {
		case c.receives:
			return fmt.Sprintf("epoch %d receives", c.epoch)
		case !output.(bool):
			return fmt.Sprintf("epoch %d is refused", c.epoch)
		default:
			return fmt.Sprintf("epoch %d takes over", c.epoch)
		}
	},
}
