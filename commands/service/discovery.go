package service

import (
	"encoding/json"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"

	"berth/commands"
	"berth/events"
)

// The verbs of the NATS service protocol are answered here and not by the
// micro package: that one publishes its answer wherever the request says, with
// the manager's permissions. A client that names a subject of the log as its
// reply subject would write there by our hand.

// endpoint is one subscription of a command, as discovery tells of it.
type endpoint struct {
	info     micro.EndpointInfo
	requests atomic.Uint64
}

// discover subscribes PING, INFO and STATS, each for all services, for all
// managers and for this one.
func (s *Service) discover() error {
	id := micro.ServiceIdentity{
		Name: serviceName, ID: nuid.Next(), Version: semver(s.o.Version),
		Metadata: map[string]string{"space": string(s.o.Space), "instance": string(s.o.Instance), "contract": commands.Digest()},
	}
	started := time.Now().UTC()
	for verb, answer := range map[micro.Verb]func() any{
		micro.PingVerb:  func() any { return micro.Ping{ServiceIdentity: id, Type: micro.PingResponseType} },
		micro.InfoVerb:  func() any { return s.info(id) },
		micro.StatsVerb: func() any { return s.stats(id, started) },
	} {
		for _, at := range [][2]string{{}, {serviceName}, {serviceName, id.ID}} {
			subject, err := micro.ControlSubject(verb, at[0], at[1])
			if err != nil {
				return err
			}
			sub, err := s.o.Conn.Subscribe(subject, func(m *nats.Msg) { s.tell(m.Reply, answer) })
			if err != nil {
				return err
			}
			s.subs = append(s.subs, sub)
			if err := sub.SetPendingLimits(MaxPending, MaxPendingBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell publishes an answer of discovery where a client waits, and nowhere else.
func (s *Service) tell(to string, answer func() any) {
	if !s.inbox(to) {
		s.misdirected()
		return
	}
	body, err := json.Marshal(answer())
	if err == nil {
		err = s.o.Conn.Publish(to, body)
	}
	if err != nil {
		s.o.Logger.Warn("discovery could not be answered", "error", events.Scrub(err.Error()))
	}
}

func (s *Service) info(id micro.ServiceIdentity) micro.Info {
	all := make([]micro.EndpointInfo, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		all = append(all, e.info)
	}
	return micro.Info{ServiceIdentity: id, Type: micro.InfoResponseType, Description: "the command plane of a Berth manager", Endpoints: all}
}

// stats counts requests only: a handler's time is in the metrics.
func (s *Service) stats(id micro.ServiceIdentity, started time.Time) micro.Stats {
	all := make([]*micro.EndpointStats, 0, len(s.endpoints))
	for _, e := range s.endpoints {
		all = append(all, &micro.EndpointStats{
			Name: e.info.Name, Subject: e.info.Subject, QueueGroup: e.info.QueueGroup, NumRequests: int(e.requests.Load()),
		})
	}
	return micro.Stats{ServiceIdentity: id, Type: micro.StatsResponseType, Started: started, Endpoints: all}
}
