package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// bareFileBytes is written with zeros beforehand: a sync into blocks that exist is the cheapest
// there is.
const bareFileBytes = 32 << 20

// barePipe is the least that a durable server can be: it reads events from a socket, writes what
// has come while the last sync ran, syncs, and writes them to another socket. It knows no protocol,
// no numbers, no sums and no readers. What is faster than this on the same machine does not wait
// for the disk.
func barePipe(_ context.Context, dir string) (_ pipe, err error) {
	file, err := newBareFile(dir)
	if err != nil {
		return pipe{}, err
	}
	in, fromSender, err := loopback()
	if err != nil {
		return pipe{}, errors.Join(err, file.Close())
	}
	out, toReceiver, err := loopback()
	if err != nil {
		return pipe{}, errors.Join(err, in.Close(), fromSender.Close(), file.Close())
	}
	b := &bare{file: file, in: fromSender, out: toReceiver, wake: make(chan struct{}, 1)}
	var running sync.WaitGroup
	running.Go(b.read)
	running.Go(b.commit)
	got := make([]byte, eventBytes)
	return pipe{
		send: func(_ context.Context, body []byte) error { _, err := in.Write(body); return err },
		receive: func(context.Context) ([]byte, error) {
			_, err := io.ReadFull(out, got)
			return got, err
		},
		close: func() error {
			err := errors.Join(in.Close(), out.Close())
			running.Wait()
			return errors.Join(err, fromSender.Close(), toReceiver.Close(), file.Close())
		},
	}, nil
}

// bare is a server for one sender and one receiver.
type bare struct {
	file    vfs.File
	in, out net.Conn
	wake    chan struct{} // holds one; closed at the end

	mu      sync.Mutex
	waiting []byte // guarded by mu
}

func (b *bare) read() {
	defer close(b.wake)
	buf := make([]byte, 64<<10)
	for {
		n, err := b.in.Read(buf)
		if err != nil {
			return
		}
		b.mu.Lock()
		b.waiting = append(b.waiting, buf[:n]...)
		b.mu.Unlock()
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// commit is done when it cannot go on; the receiver finds that out.
func (b *bare) commit() {
	var group []byte
	for offset := int64(0); ; offset += int64(len(group)) {
		if _, ok := <-b.wake; !ok {
			return
		}
		b.mu.Lock()
		group, b.waiting = b.waiting, group[:0]
		b.mu.Unlock()
		if len(group) == 0 { // it was in the group before
			continue
		}
		if offset+int64(len(group)) > bareFileBytes {
			offset = 0
		}
		if _, err := b.file.WriteAt(group, offset); err != nil {
			return
		}
		if err := b.file.Sync(); err != nil {
			return
		}
		if _, err := b.out.Write(group); err != nil {
			return
		}
	}
}

func newBareFile(dir string) (vfs.File, error) {
	file, err := vfs.OS(dir).Create("bare")
	if err != nil {
		return nil, err
	}
	if _, err = file.WriteAt(make([]byte, bareFileBytes), 0); err == nil {
		err = file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// loopback gives both ends of a TCP connection.
func loopback() (client, server net.Conn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, listener.Close()) }()
	if client, err = net.Dial("tcp", listener.Addr().String()); err != nil {
		return nil, nil, err
	}
	if server, err = listener.Accept(); err != nil {
		return nil, nil, errors.Join(err, client.Close())
	}
	return client, server, nil
}
