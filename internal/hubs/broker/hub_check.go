package broker

import "fmt"

// Check says whether CreateHub would make such a hub, where there is none of its name, with the same
// errors; nil if it would.
func (c HubConfig) Check() error {
	if _, err := define(c); err != nil {
		return fmt.Errorf("create hub: %w", err)
	}
	if err := checkNewName(c.Name); err != nil {
		return fmt.Errorf("create hub: hub %w", err)
	}
	return nil
}
